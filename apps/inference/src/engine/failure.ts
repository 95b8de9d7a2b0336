import { basename, extname, sep } from 'node:path';
import {
  AbortError,
  inOneLine,
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
    // A folder that was merged from weights may be broken by them, so its model need not be installed again.
    const sentences = [error, ...error.others].map(({ file, reason, cure }) =>
      withoutPaths(model.weights ? `${file} ${reason}.` : `${file} ${reason}. ${cure}`, model, file),
    );
    const problem = sentences.join('\n');
    const drawn = model.weights ? `${model.name} with the weights of the Fine-Tune` : model.name;
    const failure = refused(`The model ${drawn} cannot be drawn with: ${inOneLine(problem)}`);
    return model.weights ? failure : { ...failure, problem };
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

/**
 * Names files by their path inside the model's folder, because the caller knows no other, and has no business with one.
 * @param file the one at fault, whose path may have spaces in it
 */
function withoutPaths(message: string, { folder, weights }: DrawnModel, file?: string): string {
  const relative = message.replaceAll(`${folder}${sep}`, '').replaceAll(folder, 'the folder');
  const named = weights ? relative.replaceAll(weights.file, 'the file') : relative;
  const ofFile = file === undefined ? named : named.replaceAll(file, pathInside(file));
  // What is left is in the cache, where a folder's name means nothing to the caller.
  return ofFile.replace(absolutePath, (path) => {
    const whole = path.replace(/[.,:;]$/, '');
    return pathInside(whole) + path.slice(whole.length);
  });
}

/** A slash that follows no part of a path, nor a URL's, and what comes after it. */
const absolutePath = /(?<![\p{L}\p{N}_./~\])-])\/(?=[^\s/])[^\s"'`()]+/gu;

/** The path of a model's file from its folder on. */
function pathInside(path: string): string {
  const inside = [...path.matchAll(/\/(?=(?:text_encoder|unet|vae_decoder|tokenizer|scheduler)(?:\/|$))/g)].at(-1);
  if (inside) return path.slice(inside.index + 1);
  return extname(path) === '' ? 'the folder' : basename(path);
}
