import { useId, useState } from 'preact/hooks';
import type { Finetune } from '../service/client';
import { uploadWeights } from '../service/upload';
import { session } from '../session/session';
import { texts } from '../texts';
import { Icon } from '../ui/icons';
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
    if (!file.name.endsWith('.safetensors')) return setProblem(texts.finetunes.notSafetensors);
    setPart(0);
    try {
      await uploadWeights(session.value.key, finetune.id, file, setPart);
      say(texts.finetunes.uploaded);
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
        <Choose id={input} label={texts.finetunes.chooseFor(titleOf(finetune))} onFile={(file) => void upload(file)} />
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
      <Icon name="upload" /> {texts.finetunes.drop}{' '}
      <label class="file-label" for={id}>
        {texts.finetunes.choose}
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
  const text = part < 1 ? texts.finetunes.uploading(Math.round(part * 100)) : texts.finetunes.checking;
  return (
    <p role="status">
      <progress max={1} value={part} aria-label={texts.progress.label} /> {text}
    </p>
  );
}
