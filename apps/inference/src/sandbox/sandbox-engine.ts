import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxOrder } from '@app/domain';
import { seedOf } from '../engine/engine-protocol';
import type { DrawOptions, Engine } from '../engine-client/engine';
import { TaskAbortedError, TaskRefusedError } from '../engine-client/task-errors';
import { markedPicture } from './marked-picture';

/** Stands in a record for the weights and the upscaler of a picture that no model drew. */
export const sandboxName = 'sandbox';

/** Metadata of a task, with what the engine reports of it. */
export interface SandboxDrawing extends SandboxOrder {
  /** When the task was made: its steps are spread over the delay from then on. */
  createdAt: Date;
  promptChunks: number;
}

/** Draws the marked pictures of one task of a sandbox key, where others have an engine with a model. */
export class SandboxEngine implements Pick<Engine, 'device' | 'draw'> {
  readonly device = undefined;

  constructor(private readonly asked: SandboxDrawing) {}

  /**
   * @returns no time of drawing, because none is charged
   * @throws TaskAbortedError as soon as `signal` aborts
   * @throws TaskRefusedError with the message that was asked for
   */
  async draw({ request, onStarted, onProgress, onPicture, signal }: DrawOptions): Promise<{ computeMs: number }> {
    const { createdAt, delayMs, fail, promptChunks } = this.asked;
    const { numInferenceSteps: total, numImages, scheduler, seed } = request;
    onStarted?.({ promptChunks, scheduler: scheduler ?? sandboxName });
    for (let step = 1; step <= total; step++) {
      await until(createdAt.getTime() + (delayMs * step) / total, signal);
      onProgress?.({ step, total });
    }
    if (fail !== undefined) throw new TaskRefusedError(fail);
    for (let index = 0; index < numImages; index++)
      onPicture(index, markedPicture(request, seedOf(seed, index)), false);
    return { computeMs: 0 };
  }
}

/** @param at milliseconds since the epoch */
async function until(at: number, signal?: AbortSignal): Promise<void> {
  const ms = at - Date.now();
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => undefined);
  if (signal?.aborted) throw new TaskAbortedError('The task was given up before its pictures were drawn.');
}
