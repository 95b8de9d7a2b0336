import { useId, useState } from 'preact/hooks';
import { serviceUrl } from '../service/reach';
import { type components, DarkroomError, type Finetune } from '../service/client';
import { session } from '../session/session';
import { Icon } from '../ui/buttons';
import { explain, say } from '../ui/notices';
import { loadFinetunes, titleOf } from './finetunes';

/** A place to drop weights, which says how far the upload is, and what is wrong with them. */
export function WeightsDrop({ finetune }: { finetune: Finetune }) {
  const [part, setPart] = useState<number | undefined>();
  const [problem, setProblem] = useState('');
  const [isOver, setOver] = useState(false);
  const input = useId();
  const upload = async (file: File | undefined): Promise<void> => {
    if (!file || !session.value || part !== undefined) return;
    setProblem('');
    if (!file.name.endsWith('.safetensors')) return setProblem('Weights are a file that ends in .safetensors.');
    setPart(0);
    try {
      await uploadWeights(session.value.key, finetune.id, file, setPart);
      say('The weights are in place.');
    } catch (error) {
      setProblem(explain(error));
    }
    setPart(undefined);
    await loadFinetunes().catch(() => undefined);
  };
  return (
    <div
      class={`drop ${isOver ? 'is-over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void upload(event.dataTransfer?.files[0]);
      }}
    >
      {part === undefined ? (
        <Choose id={input} label={`Weights for ${titleOf(finetune)}`} onFile={(file) => void upload(file)} />
      ) : (
        <Uploading part={part} />
      )}
      <p class="problem" role="alert">
        {problem}
      </p>
    </div>
  );
}

function Choose({ id, label, onFile }: { id: string; label: string; onFile: (file: File | undefined) => void }) {
  return (
    <p>
      <Icon name="upload" /> Drop a .safetensors file here, or{' '}
      <label class="file-label" for={id}>
        choose a file
        <input
          id={id}
          class="visually-hidden"
          type="file"
          accept=".safetensors"
          aria-label={label}
          onChange={({ currentTarget }) => {
            onFile(currentTarget.files?.[0]);
            currentTarget.value = '';
          }}
        />
      </label>
    </p>
  );
}

function Uploading({ part }: { part: number }) {
  const text = part < 1 ? `Uploading: ${Math.round(part * 100)} %` : 'Checking the weights …';
  return (
    <p role="status">
      <progress max={1} value={part} aria-label="Progress" /> {text}
    </p>
  );
}

/**
 * Uploads weights and tells how far it is, which `fetch` cannot.
 * @param onProgress gets the part that was sent, from 0 to 1.
 * @throws DarkroomError with the service's reason.
 */
function uploadWeights(
  key: string,
  finetuneId: string,
  file: File,
  onProgress: (part: number) => void,
): Promise<Finetune> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', `${serviceUrl}/v1/finetunes/${finetuneId}/weights`);
    request.setRequestHeader('Authorization', `Bearer ${key}`);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    request.onerror = () => reject(new DarkroomError('', 0));
    request.onabort = request.onerror;
    request.onload = () => {
      const answer = jsonIn(request.responseText);
      if (request.status < 300 && answer) return resolve(answer as Finetune);
      const { detail, code } = (answer ?? {}) as Partial<components['schemas']['Problem']>;
      reject(new DarkroomError(detail ?? `${request.status} ${request.statusText}`, request.status, code));
    };
    request.send(file);
  });
}

/** What an answer says; undefined for a proxy's page. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
