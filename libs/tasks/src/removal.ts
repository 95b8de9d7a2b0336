import { Finetune, isTerminated } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { announce, changeChannel, stopChannel } from './channels';
import { forgetReplies } from './forget-replies';
import { lockEditsStatement, openTrainingsStatement, type Removed, removeStatement } from './statements/removal';
import { finetuneRecordBytes } from './storage-estimates';
import { addStored } from './storage-use';
import { dropUploads } from './uploads';
import { recordUsage } from './usage';

type OpenTraining = Parameters<typeof recordUsage>[1] & { computeSeconds: number };

/** What deleted rows leave behind, to be removed after the commit. */
export interface Leftover {
  /** Ids of tasks that a worker ever claimed, which may have files. */
  drawn: string[];
  /** Keys of uploads that no other task needs. */
  uploads: string[];
}

/**
 * Deletes tasks with all their rows in the caller's transaction, in a fixed number of statements; workers that draw
 * them stop. Of uploads it deletes those of edits.
 */
export async function removeTasks(manager: EntityManager, taskIds: readonly string[]): Promise<Leftover> {
  await manager.query(lockEditsStatement, [taskIds]);
  const trainings = await manager.query<OpenTraining[]>(openTrainingsStatement, [taskIds]);
  for (const { computeSeconds, ...training } of trainings) await recordUsage(manager, training, { computeSeconds });
  const [{ removed, uploads }] = await manager.query<[Removed]>(removeStatement, [taskIds]);
  await forgetReplies(manager, taskIds);
  const open = removed.filter(({ status }) => !isTerminated(status));
  await announce(
    manager,
    [changeChannel, stopChannel],
    open.map(({ id }) => id),
  );
  return { drawn: removed.filter(({ attempt }) => attempt > 0).map(({ id }) => id), uploads };
}

/** Deletes a Fine-Tune that the caller's transaction has locked, with its training and its Prompts. */
export async function removeFinetune(
  manager: EntityManager,
  { id, ownerId, weightsBytes }: Pick<Finetune, 'id' | 'ownerId' | 'weightsBytes'>,
): Promise<Leftover> {
  // Transactions that lock several rows do it in the same order, so that none deadlock.
  const prompts: { id: string }[] = await manager.query(
    'SELECT id FROM finetune_prompts WHERE finetune_id = $1 ORDER BY id FOR UPDATE',
    [id],
  );
  // The end of a training locks it before its Prompts.
  await manager.query('SELECT FROM tasks WHERE id = $1 FOR UPDATE', [id]);
  const uploads = await dropUploads(manager, [id]);
  const { drawn } = await removeTasks(manager, [id, ...prompts.map((prompt) => prompt.id)]);
  await manager.delete(Finetune, { id });
  await addStored(manager, ownerId, { weightBytes: -(weightsBytes ?? 0), recordBytes: -finetuneRecordBytes });
  return { drawn, uploads };
}
