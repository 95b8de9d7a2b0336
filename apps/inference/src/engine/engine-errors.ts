import { basename, extname, sep } from 'node:path';
import {
  AbortError,
  inOneLine,
  ModelFolderError,
  NotFiniteError,
  OutOfMemoryError,
  RequestError,
  SafetensorsError,
  UpscalerError,
  WeightsError,
} from '@app/diffusion';
import type { DrawTask, EngineMessage, Failure } from './engine-protocol';

/** The drawing was aborted by its signal, or could not begin because the process ends. */
export class DrawingAbortedError extends Error {
  override readonly name = 'DrawingAbortedError';
}

/** The drawing would fail every time; the message is one plain sentence for the caller. */
export class DrawingRefusedError extends Error {
  override readonly name: string = 'DrawingRefusedError';
}

/** Every drawing with this installed model would fail. */
export class ModelBrokenError extends DrawingRefusedError {
  override readonly name = 'ModelBrokenError';

  /** @param problem what is wrong with the model's folder, in one sentence */
  constructor(
    message: string,
    readonly problem: string,
  ) {
    super(message);
  }
}

/** The engine broke or its thread ended; a retry of the drawing may succeed. */
export class EngineBrokenError extends Error {
  override readonly name: string = 'EngineBrokenError';
}

/** The engine's thread ended or hangs, with all that it drew: any of these may be at fault. */
export class EngineLostError extends EngineBrokenError {
  override readonly name = 'EngineLostError';
}

/** The failure that an engine's thread reported, as an error. */
export function failureError({ failure, message, problem, stack }: Extract<EngineMessage, { type: 'failed' }>): Error {
  if (failure === 'aborted') return new DrawingAbortedError(message);
  if (failure === 'refused' && problem !== undefined) return new ModelBrokenError(message, problem);
  if (failure === 'refused') return new DrawingRefusedError(message);
  const error = new EngineBrokenError(message);
  if (stack) error.stack = stack;
  return error;
}

/**
 * Classifies an error: if the model, the weights or the request cause it, a retry would fail too; for anything else it
 * may succeed.
 */
export function failureOf(error: unknown, task: Pick<DrawTask, 'model' | 'adapters' | 'upscaler'>): Failure {
  const { model, adapters, upscaler } = task;
  const isAdapted = adapters.length > 0;
  const refused = (message: string): Failure => ({ failure: 'refused', message });
  if (error instanceof AbortError) return { failure: 'aborted', message: error.message };
  if (error instanceof ModelFolderError) {
    // Weights that a Fine-Tune has changed may be what is wrong, so the model need not be installed again.
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
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  // These name the value and what is accepted. A plain RangeError is V8's, of a mistake of ours or of too little memory.
  if (error instanceof RequestError || name === 'SchedulerError') return refused(message);
  const outOfMemory = error instanceof OutOfMemoryError && ({ outOfMemory: true } as const);
  return { failure: 'broken', message, ...outOfMemory, ...(stack && { stack }) };
}

/**
 * Names files by their path inside the model's folder, because the caller knows no other, and has no business with one.
 * @param file the one at fault, whose path may have spaces in it
 */
function withoutPaths(message: string, { model, adapters }: Pick<DrawTask, 'model' | 'adapters'>, file = ''): string {
  const relative = message.replaceAll(`${model.folder}${sep}`, '').replaceAll(model.folder, 'the folder');
  const named = adapters.reduce((text, weights) => text.replaceAll(weights.file, 'the file'), relative);
  const ofFile = file === '' ? named : named.replaceAll(file, pathInside(file));
  // Any other path is of a folder of this machine, whose name means nothing to the caller.
  return ofFile.replace(absolutePath, (path) => {
    const whole = path.replace(/[.,:;]$/, '');
    return pathInside(whole) + path.slice(whole.length);
  });
}

/** A slash that follows no part of a path, nor a URL's, and what comes after it. */
const absolutePath = /(?<![\p{L}\p{N}_./~\])-])\/(?=[^\s/])[^\s"'`()]+/gu;

/** The path of a model's file from its folder on. */
function pathInside(path: string): string {
  const inside = [
    ...path.matchAll(/\/(?=(?:text_encoder(?:_2)?|unet|vae|vae_decoder|tokenizer(?:_2)?|scheduler)(?:\/|$))/g),
  ].at(-1);
  if (inside) return path.slice(inside.index + 1);
  return extname(path) === '' ? 'the folder' : basename(path);
}
