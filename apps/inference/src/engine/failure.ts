import { basename, extname, sep } from 'node:path';
import {
  AbortError,
  inOneLine,
  ModelFolderError,
  NotFiniteError,
  OutOfMemoryError,
  partFolders,
  RequestError,
  SafetensorsError,
  SchedulerError,
  UpscalerError,
  WeightsError,
} from '@app/diffusion';
import type { DrawTask, Failure, ModelSource } from './engine-protocol';

/**
 * The failure to report for an error. If the model, an adapter, an upscaler or the request is at fault, a retry would
 * fail too; after any other error it may succeed.
 */
export function failureOf(error: unknown, task: Pick<DrawTask, 'model' | 'adapters' | 'upscaler'>): Failure {
  const { model, adapters, upscaler } = task;
  const isAdapted = adapters.length > 0;
  const refused = (message: string): Failure => ({ failure: 'refused', message });
  if (error instanceof AbortError) return { failure: 'aborted', message: error.message };
  if (error instanceof ModelFolderError) {
    // The Fine-Tune's weights may be at fault, so the advice to install the model again is left out.
    const sentences = [error, ...error.others].map(({ file, reason, cure }) =>
      withoutPaths(isAdapted ? `${file} ${reason}.` : `${file} ${reason}. ${cure}`, task, file),
    );
    const problem = sentences.join('\n');
    const drawn = isAdapted ? `${model.name} with the weights of the Fine-Tune` : model.name;
    const failure = refused(`The model ${drawn} cannot be drawn with: ${inOneLine(problem)}`);
    return isAdapted ? failure : { ...failure, problem };
  }
  if (error instanceof WeightsError || error instanceof SafetensorsError)
    return refused(`The weights of the Fine-Tune cannot be used: ${withoutPaths(error.message, task)}`);
  if (error instanceof NotFiniteError)
    return refused(error.message + (isAdapted ? ' So may a lower scale of the weights of the Fine-Tune.' : ''));
  if (error instanceof UpscalerError && upscaler)
    return refused(`The upscaler ${upscaler.name} cannot be used: ${error.message}`);
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  // These messages are for callers. A plain RangeError comes from V8: a defect of the engine, or a lack of memory.
  if (error instanceof RequestError || error instanceof SchedulerError) return refused(message);
  const outOfMemory = error instanceof OutOfMemoryError && ({ outOfMemory: true } as const);
  return { failure: 'broken', message, ...outOfMemory, ...(stack && { stack }) };
}

/**
 * The message with paths inside the model's folder in place of paths of this machine, which callers must not see.
 * @param file path of the file at fault, which may have spaces in it
 */
export function withoutPaths(
  message: string,
  { model, adapters }: Pick<DrawTask, 'model' | 'adapters'>,
  file = '',
): string {
  const relative = message.replaceAll(`${model.folder}${sep}`, '').replaceAll(model.folder, 'the folder');
  const named = adapters.reduce((text, adapter) => text.replaceAll(adapter.file, 'the file'), relative);
  const ofFile = file === '' ? named : named.replaceAll(file, pathInside(file));
  // Other paths are shortened to the name of the file.
  return ofFile.replace(absolutePath, (path) => {
    const whole = path.replace(/[.,:;]$/, '');
    return pathInside(whole) + path.slice(whole.length);
  });
}

/** Tells a fault of a model beside the one that draws as one of the request: others can still be drawn. @param what it is */
export const asRequestError =
  (what: string, source: ModelSource) =>
  (error: unknown): never => {
    if (!(error instanceof ModelFolderError)) throw error;
    const fault = withoutPaths(`${error.file} ${error.reason}.`, { model: source, adapters: [] }, error.file);
    throw new RequestError(`The ${what} ${source.name} cannot be used: ${fault}`);
  };

/** An absolute path, which is no part of a URL. */
const absolutePath = /(?<![\p{L}\p{N}_./~\])-])\/(?=[^\s/])[^\s"'`()]+/gu;

/** Where a path goes into a folder of a model. */
const folderOfModel = new RegExp(`/(?=(?:${partFolders().join('|')}|tokenizer(?:_2)?|scheduler)(?:/|$))`, 'g');

/** Path of a model's file, relative to the model's folder. */
function pathInside(path: string): string {
  const inside = [...path.matchAll(folderOfModel)].at(-1);
  if (inside) return path.slice(inside.index + 1);
  return extname(path) === '' ? 'the folder' : basename(path);
}
