import type { EngineMessage } from '../engine/engine-protocol';

/** The task was canceled, or could not begin because the process ends. */
export class TaskAbortedError extends Error {
  override readonly name = 'TaskAbortedError';

  /** @param computeSeconds what it had taken of its device until then */
  constructor(
    message: string,
    readonly computeSeconds = 0,
  ) {
    super(message);
  }
}

/** The task would fail every time. The message is one plain sentence for its owner. */
export class TaskRefusedError extends Error {
  override readonly name: string = 'TaskRefusedError';
}

/** All pictures of the task are flagged, and none may be stored. */
export class PicturesFilteredError extends TaskRefusedError {
  override readonly name = 'PicturesFilteredError';

  constructor(
    readonly filtered: number,
    readonly flaggedBy: readonly string[],
  ) {
    super(
      filtered === 1
        ? 'The picture was flagged, and is not stored.'
        : `All ${filtered} pictures were flagged, and none is stored.`,
    );
  }
}

/** Every task with this installed model would fail. */
export class ModelBrokenError extends TaskRefusedError {
  override readonly name = 'ModelBrokenError';

  /** @param problem faults of the model's folder, a line each */
  constructor(
    message: string,
    readonly problem: string,
  ) {
    super(message);
  }
}

/** The engine broke, or its thread ended. A retry of the task may succeed. */
export class EngineBrokenError extends Error {
  override readonly name: string = 'EngineBrokenError';
}

/** The engine's thread ended or hangs. Any of the tasks that it had may be at fault. */
export class EngineLostError extends EngineBrokenError {
  override readonly name = 'EngineLostError';
}

/** The failure that an engine's thread reported, as an error. */
export function failureError({
  failure,
  message,
  problem,
  stack,
  computeMs = 0,
}: Extract<EngineMessage, { type: 'failed' }>): Error {
  if (failure === 'aborted') return new TaskAbortedError(message, computeMs / 1000);
  if (failure === 'refused' && problem !== undefined) return new ModelBrokenError(message, problem);
  if (failure === 'refused') return new TaskRefusedError(message);
  const error = new EngineBrokenError(message);
  if (stack) error.stack = stack;
  return error;
}
