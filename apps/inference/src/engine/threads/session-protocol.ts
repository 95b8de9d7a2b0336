import {
  AbortError,
  type Device,
  type GraphFile,
  type GraphSession,
  ModelFolderError,
  OutOfMemoryError,
  ProviderUnavailableError,
  type TensorCopy,
} from '@app/diffusion';
import type { InferenceSession } from 'onnxruntime-node';

/**
 * What an engine asks of another thread with sessions, which does one thing after the other and answers each with its
 * id.
 */
export type SessionCommand = { id: number } & (
  | { type: 'open'; graph: GraphFile; device: Device; intraOpNumThreads: number; optimizedModelDir: string }
  /** A graph as it is, neither checked nor cached. */
  | { type: 'openFile'; file: string; options: InferenceSession.SessionOptions }
  /** Not made any more once `cancel`, one Int32, is not 0. */
  | { type: 'run'; session: number; feeds: Record<string, TensorCopy>; output: string; cancel?: SharedArrayBuffer }
  | { type: 'release'; session: number }
);

/** A graph that the thread has opened; `session` is its number there. */
export type OpenedGraph = { session: number } & Pick<GraphSession, 'file' | 'inputs' | 'outputs'>;

/** Times are milliseconds of `threadsNow`. */
export type SessionAnswer = { id: number } & (
  | { type: 'opened'; opened: OpenedGraph }
  /** A `run` has begun: its result will follow. */
  | { type: 'began'; at: number }
  | { type: 'result'; tensor: TensorCopy; endedAt: number }
  | { type: 'released' }
  | { type: 'failed'; error: ErrorCopy; endedAt: number }
);

/** What crosses the border of a thread of an error. */
export type ErrorCopy = Pick<Error, 'name' | 'message'> &
  Partial<Pick<ModelFolderError, 'file' | 'reason' | 'cure'> & Pick<ProviderUnavailableError, 'device'>>;

export function copyOfError(error: Error): ErrorCopy {
  const { name, message } = error;
  if (error instanceof ModelFolderError)
    return { name, message, file: error.file, reason: error.reason, cure: error.cure };
  if (error instanceof ProviderUnavailableError) return { name, message, device: error.device, reason: error.reason };
  return { name, message };
}

/** Of the same class, if that decides what is done about it. */
export function errorFromCopy({ name, message, file, device, reason, cure }: ErrorCopy): Error {
  if (name === AbortError.name) return new AbortError();
  if (name === OutOfMemoryError.name) return new OutOfMemoryError(message);
  if (file !== undefined && reason !== undefined && cure !== undefined) return new ModelFolderError(file, reason, cure);
  if (device !== undefined && reason !== undefined) return new ProviderUnavailableError(device, reason);
  return Object.assign(new Error(message), { name });
}
