import type { EntityManager } from 'typeorm';

// PostgreSQL channels for messages between processes. Nothing depends on a message arriving.

/** A task was canceled or deleted, so the worker that draws it stops. The payload is the id. */
export const stopChannel = 'darkroom_stop';

/** A task changed its status or was deleted. The payload is the id. */
export const changeChannel = 'darkroom_change';

/** A webhook is due. The payload is the id of its delivery. */
export const deliveryChannel = 'darkroom_delivery';

/** A step of a drawing is done. The payload is a `StepMessage` in JSON. */
export const progressChannel = 'darkroom_progress';

/** One step of a drawing, or of a training. */
export interface StepMessage {
  id: string;
  attempt: number;
  /** Steps done, from 1 to `total`. */
  step: number;
  /** The number of steps of the request. */
  total: number;
  /** A small JPEG in base64, in some messages. */
  preview?: string;
  /** Its place among all steps; some are done again. */
  order?: number;
  /** Training loss. */
  loss?: number;
}

/** Sends ids on channels; listeners receive them when the surrounding transaction commits. */
export async function announce(
  manager: EntityManager,
  channels: readonly string[],
  ids: readonly string[],
): Promise<void> {
  await manager.query('SELECT pg_notify(channel, id) FROM unnest($1::text[]) AS channel, unnest($2::text[]) AS id', [
    channels,
    ids,
  ]);
}
