import { inspectWeights, ModelFolderError, WeightsError } from '@app/diffusion';
import type { ErrorCode } from '@app/domain';
import { serveWork } from '@app/process';

/** A file to inspect, and its base model. */
export interface InspectionOrder {
  path: string;
  modelFolder: string;
}

/** The properties of the file, or why it was rejected. */
export type Inspection =
  /** `tokens`: embeddings of a textual inversion; `unmatched`: tensors without a layer; `note`: for people. */
  | { outcome: 'accepted'; kind: 'lora' | 'textual_inversion'; unmatched: number; tokens?: number; note?: string }
  | { outcome: 'refused'; code: ErrorCode<'unprocessable'>; message: string }
  | { outcome: 'tooLarge' };

serveWork(async ({ path, modelFolder }: InspectionOrder): Promise<Inspection> => {
  try {
    return { outcome: 'accepted', ...(await inspectWeights(path, modelFolder)) };
  } catch (error) {
    if (error instanceof WeightsError) return { outcome: 'refused', code: error.code, message: error.message };
    if (error instanceof ModelFolderError)
      return { outcome: 'refused', code: 'ModelBroken', message: 'The model of the Fine-Tune cannot be read.' };
    // V8's message for an array that does not fit into memory.
    if (error instanceof RangeError) return { outcome: 'tooLarge' };
    throw error;
  }
});
