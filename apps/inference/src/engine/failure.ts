import { sep } from 'node:path';
import {
  AbortError,
  ModelFolderError,
  NotFiniteError,
  OnnxModelError,
  OutOfMemoryError,
  RequestError,
  SafetensorsError,
  WeightsError,
} from '@app/diffusion';
import { UpscalerError } from './engine-errors';
import type { DrawnModel, Failure, UpscalerSource } from './engine-protocol';

/**
 * Classifies an error: if the model, the weights or the request cause it, a retry would fail too; for
 * anything else it may succeed.
 */
export function failureOf(
  error: unknown,
  { model, upscaler }: { model: DrawnModel; upscaler?: UpscalerSource },
): Failure {
  const refused = (message: string): Failure => ({ failure: 'refused', message });
  if (error instanceof AbortError) return { failure: 'aborted', message: error.message };
  if (error instanceof ModelFolderError) {
    const cannot = 'cannot be drawn with:';
    // A folder that was merged from weights may be broken by them, so its model need not be installed again.
    if (model.weights) {
      const reason = withoutPaths(`${error.file} ${error.reason}.`, model);
      return refused(`The model ${model.name} with the weights of the Fine-Tune ${cannot} ${reason}`);
    }
    const problem = withoutPaths(error.message, model);
    return { ...refused(`The model ${model.name} ${cannot} ${problem}`), problem };
  }
  if (error instanceof WeightsError || error instanceof SafetensorsError || error instanceof OnnxModelError)
    return refused(`The weights of the Fine-Tune cannot be used: ${withoutPaths(error.message, model)}`);
  if (error instanceof NotFiniteError)
    return refused(error.message + (model.weights ? ' So may a lower scale of the weights of the Fine-Tune.' : ''));
  if (error instanceof UpscalerError && upscaler)
    return refused(`The upscaler ${upscaler.name} cannot be used: ${error.message}`);
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  // These name the value and what is accepted. A plain RangeError is V8's, of a mistake of ours
  // or of too little memory.
  if (error instanceof RequestError || name === 'SchedulerError') return refused(message);
  const outOfMemory = error instanceof OutOfMemoryError && ({ outOfMemory: true } as const);
  return { failure: 'broken', message, ...outOfMemory, ...(stack && { stack }) };
}

/** Messages of a model folder name its files by absolute path; the path inside the folder is enough. */
function withoutPaths(message: string, { folder, weights }: DrawnModel): string {
  const relative = message.replaceAll(`${folder}${sep}`, '').replaceAll(folder, 'the folder');
  const named = weights ? relative.replaceAll(weights.file, 'the file') : relative;
  // A merged model is in the cache, under a name that means nothing to the caller.
  return named.replace(/\S+/g, (word) => {
    const inside = [...word.matchAll(/\/(?=(?:text_encoder|unet|vae_decoder|tokenizer|scheduler)\/)/g)].at(-1);
    return inside ? word.slice(0, word.indexOf('/')) + word.slice(inside.index + 1) : word;
  });
}
