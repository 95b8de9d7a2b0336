import { type Image, Task, type TerminatedStatus, Training } from '@app/domain';
import { type EntityManager, In } from 'typeorm';
import { announce, changeChannel, stopChannel } from './channels';
import { correctCharge } from './fair-queue';
import type { StoredChangeOf } from './storage-use';
import { recordUsage } from './usage';
import { insertDeliveries } from './webhook-deliveries';

/** Which weights draw a task, and how many chunks its prompt was encoded in. */
export interface Served {
  servedBy: string;
  promptChunks?: number;
}

/** A drawn picture; the first one has a thumbnail, and of a Prompt also a square one for Styles. */
export interface DrawnPicture extends Omit<Image, 'task' | 'taskId' | 'thumbnailBytes'> {
  thumbnailBytes?: number | null;
  styleThumbnail?: { storageKey: string; bytes: number };
}

/** How a task ended, and its results. */
export interface Settlement {
  status: TerminatedStatus;
  error?: string | null;
  upscaler?: string | null;
  /** Written when drawing began; repeated here, because that write may have failed. */
  served?: Served;
  computeSeconds?: number;
  images?: readonly DrawnPicture[];
  /** How many flagged pictures were drawn and not stored, and the indexes of those that were. */
  filtered?: number;
  flagged?: readonly number[];
  /** What flagged any of them. */
  flaggedBy?: readonly string[];
}

/** The row as it is now, locked until the transaction ends. */
export function lockTask(manager: EntityManager, id: string): Promise<Task | null> {
  return manager.findOne(Task, { where: { id }, lock: { mode: 'pessimistic_write' } });
}

/** Puts a task that the transaction has locked back into the queue. */
export async function putBack(
  manager: EntityManager,
  { id }: Task,
  counts: Partial<Pick<Task, 'deaths' | 'failures'>>,
  delayMs: number,
): Promise<void> {
  await manager.update(
    Task,
    { id },
    {
      status: 'queued',
      ...counts,
      drawnAlone: false,
      heartbeatAt: () => 'NULL',
      place: () => 'NULL',
      notBefore: () => `now() + ${delayMs} * interval '1 ms'`,
    },
  );
  // The next claim charges it again.
  await correctCharge(manager, id, 0);
  await announce(manager, [changeChannel], [id]);
}

/**
 * Terminates open tasks that the transaction has locked, all in the same way: charge, status, message and webhook
 * deliveries.
 * @returns what their keys get back of the bytes that were kept for pictures; the caller counts it last
 */
export async function terminate(
  manager: EntityManager,
  rows: readonly Pick<Task, 'id' | 'kind' | 'status'>[],
  settlement: Settlement,
): Promise<StoredChangeOf[]> {
  const ids = rows.map(({ id }) => id);
  const trainings = await trainingsOf(manager, rows);
  for (const { id, status } of rows)
    if (status === 'processing')
      await correctCharge(manager, id, settlement.computeSeconds ?? trainings.get(id)?.computeSeconds);
  const reserved = await manager.query<{ ownerId: string; bytes: string }[]>(
    'SELECT owner_id AS "ownerId", sum(reserved_bytes) AS bytes FROM tasks WHERE id = ANY($1) GROUP BY owner_id',
    [ids],
  );
  await manager.update(
    Task,
    { id: In(ids) },
    {
      status: settlement.status,
      reservedBytes: 0,
      error: settlement.error ?? null,
      computeSeconds: settlement.computeSeconds ?? null,
      pictureBytes: bytesOf(settlement),
      completedAt: () => `greatest(date_trunc('milliseconds', clock_timestamp()), created_at)`,
    },
  );
  // A worker that settles its task has stopped drawing it; one whose task is canceled must be told to stop.
  await announce(manager, settlement.status === 'canceled' ? [changeChannel, stopChannel] : [changeChannel], ids);
  await insertDeliveries(manager, rows);
  const released: StoredChangeOf[] = reserved.map(({ ownerId, bytes }) => ({ ownerId, reservedBytes: -Number(bytes) }));
  for (const training of trainings.values()) released.push(...(await endTraining(manager, training, settlement)));
  return released;
}

async function trainingsOf(
  manager: EntityManager,
  rows: readonly Pick<Task, 'id' | 'kind'>[],
): Promise<ReadonlyMap<string, Training>> {
  const ids = rows.flatMap(({ id, kind }) => (kind === 'training' ? id : []));
  if (ids.length === 0) return new Map();
  const found = await manager.find(Training, { where: { id: In(ids) }, relations: { task: true } });
  return new Map(found.map((training) => [training.id, training]));
}

/**
 * The Prompts that wait for the training are drawn, or fail with it. Its compute is recorded as usage however it ended.
 * @returns what the keys of those that fail get back
 */
async function endTraining(
  manager: EntityManager,
  { id, task, computeSeconds }: Training,
  { status, error }: Settlement,
): Promise<StoredChangeOf[]> {
  const waiting = await manager.query<Pick<Task, 'id' | 'kind' | 'status'>[]>(
    `SELECT task.id, task.kind, task.status FROM tasks task JOIN finetune_prompts prompt ON prompt.id = task.id
     WHERE prompt.finetune_id = $1 AND task.queue = 'waiting' AND task.status = 'queued'
     ORDER BY task.id FOR UPDATE OF task`,
    [id],
  );
  const why = status === 'canceled' ? 'was canceled.' : `failed: ${error}`;
  const what = task.queue === 'weights' ? 'Fetching the weights' : 'The training';
  let released: StoredChangeOf[] = [];
  if (waiting.length > 0 && status !== 'succeeded')
    released = await terminate(manager, waiting, { status: 'failed', error: `${what} of the Fine-Tune ${why}` });
  else if (waiting.length > 0) {
    const ids = waiting.map((each) => each.id);
    await manager.update(Task, { id: In(ids) }, { queue: 'drawing' });
    await manager.query(
      `UPDATE drawings SET weights_hash = finetune.weights_hash, weights_scale = finetune.weights_scale
       FROM finetunes finetune WHERE finetune.id = $1 AND drawings.id = ANY ($2)`,
      [id, ids],
    );
    await announce(manager, [changeChannel], ids);
  }
  if (!task.sandbox && computeSeconds > 0) await recordUsage(manager, { ...task, finetuneId: id }, { computeSeconds });
  return released;
}

export function bytesOf({ images = [] }: Settlement): number {
  return images.reduce(
    (sum, { bytes, thumbnailBytes, styleThumbnail }) =>
      sum + bytes + (thumbnailBytes ?? 0) + (styleThumbnail?.bytes ?? 0),
    0,
  );
}
