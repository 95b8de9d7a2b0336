import { parentPort, workerData } from 'node:worker_threads';
import { inspectWeights, OnnxModelError, WeightsError } from '@app/diffusion';

/** What the thread is started with. */
export interface InspectionOrder {
  path: string;
  modelFolder: string;
}

/** What the thread answers, once. */
export type Inspection =
  /** `tokens`: embeddings of a textual inversion. */
  | { outcome: 'accepted'; kind: 'lora' | 'textual_inversion'; tokens?: number }
  | { outcome: 'refused'; code: string; message: string }
  | { outcome: 'tooLarge' }
  | { outcome: 'failed'; error: unknown };

async function inspect({ path, modelFolder }: InspectionOrder): Promise<Inspection> {
  try {
    const { kind, tokens } = await inspectWeights(path, modelFolder);
    return { outcome: 'accepted', kind, ...(tokens !== undefined && { tokens }) };
  } catch (error) {
    if (error instanceof WeightsError) return { outcome: 'refused', code: error.code, message: error.message };
    if (error instanceof OnnxModelError)
      return { outcome: 'refused', code: 'ModelBroken', message: 'The model of the Fine-Tune cannot be read.' };
    // The runtime's words for an array that it has no memory for.
    if (error instanceof RangeError) return { outcome: 'tooLarge' };
    return { outcome: 'failed', error };
  }
}

void inspect(workerData as InspectionOrder).then((found) => parentPort?.postMessage(found));
