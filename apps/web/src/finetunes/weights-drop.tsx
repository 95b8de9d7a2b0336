import { useState } from 'preact/hooks';
import type { Finetune } from '../service/client';
import { sendFile } from '../service/send-file';
import { session } from '../session/session';
import { DropBox, Uploading } from '../ui/drop';
import { explain, say } from '../ui/notices';
import { loadFinetunes, titleOf } from './finetunes';

/** A drop zone for weights, with the upload's progress and errors. */
export function WeightsDrop({ finetune }: { finetune: Finetune }) {
  const [part, setPart] = useState<number | undefined>();
  const [problem, setProblem] = useState('');
  const upload = async (file: File | undefined): Promise<void> => {
    if (!file || !session.value || part !== undefined) return;
    setProblem('');
    if (!file.name.endsWith('.safetensors')) return setProblem('Weights are a file that ends in .safetensors.');
    setPart(0);
    try {
      const path = `/v1/finetunes/${finetune.id}/weights`;
      await sendFile({ method: 'PUT', path, key: session.value.key, file, onProgress: setPart });
      say('The weights are in place.');
    } catch (error) {
      setProblem(explain(error));
    }
    setPart(undefined);
    await loadFinetunes().catch(() => undefined);
  };
  return (
    <DropBox
      what="a .safetensors file"
      label={`Weights for ${titleOf(finetune)}`}
      accept=".safetensors"
      onFiles={([file]) => void upload(file)}
      busy={part !== undefined && <Uploading part={part} then="Checking the weights …" />}
      problem={problem}
    />
  );
}
