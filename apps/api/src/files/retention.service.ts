import { type Config, CONFIG } from '@app/config';
import { underSessionLock } from '@app/database';
import { RecurringService } from '@app/process';
import { addStored, finetuneRecordBytes, Tasks } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { replayHours } from '../http/idempotency.interceptor';
import { StoredFiles } from './stored-files';

const intervalMs = 10 * 60_000;
const batchSize = 200;
/** Advisory lock that lets one process at a time delete: "RETE" in ASCII. */
export const retentionLock = 0x52455445;

/** Numbers of what a round deleted. */
export interface RetentionCounts {
  records: number;
  replies: number;
  entries: number;
}

/**
 * Deletes expired data: terminated Generations and Prompts of keys with a retention, with pictures and deliveries,
 * Fine-Tunes whose training made no weights, replies stored under an Idempotency-Key, and entries of the audit trail. A
 * record whose webhook is still being delivered waits for that.
 */
@Injectable()
export class RetentionService extends RecurringService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly tasks: Tasks,
    private readonly files: StoredFiles,
    @Inject(CONFIG) private readonly config: Config,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({
      intervalMs,
      failure: 'retention failed',
      work: (signal) => this.run(signal),
    });
  }

  /** Deletes all that is due, in batches. @returns undefined while another process is doing it. */
  run(signal?: AbortSignal): Promise<RetentionCounts | undefined> {
    return underSessionLock(this.dataSource, retentionLock, async () => {
      const counts = {
        records: await inBatches(() => this.removeRecords(), signal),
        replies: await inBatches(() => this.removeReplies(), signal),
        entries: await inBatches(() => this.removeEntries(), signal),
      };
      if (counts.records + counts.replies + counts.entries > 0)
        this.logger.log('expired records deleted', { ...counts });
      return counts;
    });
  }

  private async removeRecords(): Promise<number> {
    const { ids, uploads } = await this.transactions.run(async (manager) => {
      const due = await lockDue(manager);
      const dueOf = (kind: string): string[] => due.filter((each) => each.kind === kind).map(({ id }) => id);
      // Deleting a Prompt locks its row first and its task next: a locked one is being deleted anyway.
      const prompts = await manager.query<{ id: string }[]>(
        'SELECT id FROM finetune_prompts WHERE id = ANY($1) FOR UPDATE SKIP LOCKED',
        [dueOf('prompt')],
      );
      const trainings = await lockUnused(manager, dueOf('training'));
      const ids = [...dueOf('generation'), ...prompts.map(({ id }) => id), ...trainings];
      const { uploads } = await this.tasks.removeAll(manager, ids);
      await removeUnused(manager, trainings);
      return { ids, uploads };
    });
    await this.files.removeTasks(ids);
    await this.files.removeAll(uploads);
    return ids.length;
  }

  private async removeReplies(): Promise<number> {
    const [, count] = await this.dataSource.query<[unknown[], number]>(
      `DELETE FROM idempotent_replies WHERE (owner_id, key) IN (
         SELECT owner_id, key FROM idempotent_replies
         WHERE created_at < now() - $1 * interval '1 hour' ORDER BY created_at LIMIT $2
       )`,
      [replayHours, batchSize],
    );
    return count;
  }

  /** Without a number of days nothing is deleted: an api that lacks the setting would delete what another keeps. */
  private async removeEntries(): Promise<number> {
    if (this.config.auditDays === 0) return 0;
    const [, count] = await this.dataSource.query<[unknown[], number]>(
      `DELETE FROM audit_entries WHERE id IN (
         SELECT id FROM audit_entries WHERE at < now() - $1 * interval '1 day' ORDER BY at LIMIT $2
       )`,
      [this.config.auditDays, batchSize],
    );
    return count;
  }
}

/** In SQL: a Fine-Tune has neither weights nor Prompts. */
const isUnused = `weights_key IS NULL
  AND NOT EXISTS (SELECT FROM finetune_prompts WHERE finetune_id = finetunes.id)`;

/** Locks those that are still unused. One that is getting weights or a Prompt is left out. */
async function lockUnused(manager: EntityManager, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const idsOf = async (statement: string, of: readonly string[]): Promise<string[]> =>
    (await manager.query<{ id: string }[]>(statement, [of])).map(({ id }) => id);
  const locked = await idsOf('SELECT id FROM finetunes WHERE id = ANY($1) FOR UPDATE SKIP LOCKED', ids);
  // Only a statement that begins after the lock sees earlier writes.
  return idsOf(`SELECT id FROM finetunes WHERE id = ANY($1) AND ${isUnused}`, locked);
}

async function removeUnused(manager: EntityManager, ids: readonly string[]): Promise<void> {
  const [removed] = await manager.query<[{ owner: string }[], number]>(
    'DELETE FROM finetunes WHERE id = ANY($1) RETURNING owner_id AS owner',
    [ids],
  );
  // In one order, because two rounds may lock the same counts.
  for (const { owner } of removed.sort((a, b) => (a.owner < b.owner ? -1 : 1)))
    await addStored(manager, owner, { recordBytes: -finetuneRecordBytes });
}

function lockDue(manager: EntityManager): Promise<{ id: string; kind: string }[]> {
  return manager.query(
    `SELECT task.id, task.kind FROM tasks task JOIN api_keys caller ON caller.id = task.owner_id
     WHERE caller.retention_days IS NOT NULL
       AND task.completed_at < now() - caller.retention_days * interval '1 day'
       AND task.status IN ('succeeded', 'failed', 'canceled')
       AND NOT EXISTS (
         SELECT 1 FROM webhook_deliveries delivery
         WHERE delivery.task_id = task.id AND delivery.status = 'pending'
       )
       AND (task.kind <> 'training' OR EXISTS (
         SELECT FROM finetunes WHERE id = task.id AND ${isUnused}
       ))
     ORDER BY task.completed_at LIMIT $1 FOR UPDATE OF task SKIP LOCKED`,
    [batchSize],
  );
}

/** Deletes in batches. @returns how many were deleted. */
async function inBatches(removeBatch: () => Promise<number>, signal?: AbortSignal): Promise<number> {
  let sum = 0;
  for (let count = batchSize; count === batchSize && !signal?.aborted; sum += count) count = await removeBatch();
  return sum;
}
