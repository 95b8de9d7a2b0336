import { type Config, CONFIG } from '@app/config';
import {
  AuditEntry,
  Drawing,
  Finetune,
  FinetunePrompt,
  Generation,
  isTerminated,
  picturesIn,
  picturesToLearn,
  Task,
  type TaskQueue,
  Training,
  UnprocessableError,
} from '@app/domain';
import { afterCommit, Transactions, WakeUps } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { costOf } from './drawings';
import { type Audited, auditOf, refusedEntries } from './audit-entries';
import { levelNewcomerStatement } from './fair-queue';
import { finetuneRecordBytes, storageOf, storageOfTraining, type TaskStorage } from './storage-estimates';
import { StorageQuota, type StorageRow } from './storage-quota';
import { addStored } from './storage-use';
import { costOfTraining, type NewTraining } from './trainings';
import { type NeededPictures, useUploads } from './uploads';

/** What the intake and the worker add to a drawing. */
type NotYet =
  'id' | 'task' | 'weightsHash' | 'weightsScale' | 'servedBy' | 'upscaler' | 'filtered' | 'flagged' | 'flaggedBy';

/** A new task, what it draws, and the record that owns it; only tests omit the record. */
export interface NewTask
  extends Pick<Task, 'id' | 'kind' | 'ownerId' | 'endUser' | 'model' | 'sandbox' | 'createdAt'>, Omit<Drawing, NotYet> {
  generation?: Pick<Generation, 'webhook' | 'metadata'>;
  finetunePrompt?: Pick<FinetunePrompt, 'prompt' | 'webhook' | 'metadata'>;
}

/** Everything one request inserts: all of it or nothing. */
export interface NewTasks {
  ownerId: string;
  /** Whose pictures the tasks may use. */
  accountId?: string;
  /** Of this owner; 0: no limit. */
  maxQueued: number;
  tasks: readonly NewTask[];
  /** Base of the URLs of pictures here: a task's source pictures are kept as long as the task. */
  publicUrl?: string;
  training?: NewTraining;
  /** What the owner's key has stored, if its limit counts. */
  storage?: StorageRow;
}

/** The storage of everything that a request inserts. */
export function storageOfAll({
  tasks,
  training,
}: Pick<NewTasks, 'training'> & { tasks: readonly Parameters<typeof storageOf>[0][] }): TaskStorage {
  const all = [...tasks.map(storageOf), ...(training ? [storageOfTraining(training)] : [])];
  return {
    reservedBytes: all.reduce((sum, { reservedBytes }) => sum + reservedBytes, 0),
    recordBytes: all.reduce((sum, { recordBytes }) => sum + recordBytes, training ? finetuneRecordBytes : 0),
  };
}

/** If not accepted, the owner's key is revoked, or its limit has no room beside the `queued` tasks that wait. */
export type InsertOutcome = { accepted: true } | { accepted: false; revoked: boolean; queued: number };

/**
 * When fewer places than this are left in a key's limit of waiting tasks, its requests are counted one after the other.
 * Otherwise they need not be: a key has fewer open requests, of one task each.
 */
const fewPlaces = 200;

/** In SQL: the waiting tasks of the owner $1, counted up to $2. */
export const countQueued = `(SELECT count(*)::integer FROM (
    SELECT FROM tasks WHERE owner_id = $1 AND status = 'queued' LIMIT $2
  ) AS counted)`;

/** Parameters: those of `countQueued`. */
const lookStatement = `
SELECT (SELECT revoked_at FROM api_keys WHERE id = $1) IS NOT NULL AS revoked,
  ${countQueued} AS queued,
  EXISTS (SELECT FROM tasks WHERE owner_id = $1 AND status IN ('queued', 'processing') AND NOT sandbox
    AND queue <> 'waiting') AS present`;

/** Writes what a request makes: its tasks, the records that own them, and its owner's place in the fair queue. */
@Injectable()
export class TaskIntake {
  constructor(
    private readonly transactions: Transactions,
    private readonly wakeUps: WakeUps,
    private readonly quota: StorageQuota,
    @Inject(CONFIG) private readonly config: Pick<Config, 'auditDays'> = { auditDays: 0 },
  ) {}

  /**
   * Resolves when everything is committed and a worker is about to be woken, or when there is no room.
   * @throws UnprocessableError `PictureNotFound` for an upload that was deleted meanwhile, `FineTuneNotTrained` for a
   * Prompt of a Fine-Tune whose training did not succeed; what `StorageQuota.assertRoom` throws
   */
  async insert({
    ownerId,
    accountId = ownerId,
    maxQueued,
    tasks,
    publicUrl = '',
    training,
    storage,
  }: NewTasks): Promise<InsertOutcome> {
    const count = tasks.length + (training ? 1 : 0);
    const outcome = await this.transactions.run(async (manager): Promise<InsertOutcome> => {
      let { revoked, queued, present } = await look(manager, ownerId, maxQueued);
      const room = (): number => maxQueued - queued - count;
      if (maxQueued > 0 && (count > 1 || room() < fewPlaces)) {
        await manager.query(`SELECT pg_advisory_xact_lock(hashtextextended('queue of ' || $1, 0))`, [ownerId]);
        // A statement after the lock sees everything that was committed before it.
        ({ revoked, queued, present } = await look(manager, ownerId, maxQueued));
      }
      if (revoked || (maxQueued > 0 && room() < 0)) return { accepted: false, revoked, queued };
      if (!present && [...tasks, training].some((task) => task && !task.sandbox))
        await manager.query(levelNewcomerStatement, [ownerId]);
      if (training) await insertTraining(manager, training, tasks, { publicUrl, accountId });
      await insertRows(manager, tasks);
      if (this.config.auditDays > 0) await manager.insert(AuditEntry, auditOf(tasks, training));
      for (const { id: taskId, inputs } of tasks)
        await useUploads(manager, { publicUrl, accountId, taskId, pictures: picturesIn(inputs) });
      const added = storageOfAll({ tasks, training });
      const stored = await addStored(manager, ownerId, added);
      if (stored && storage) this.quota.assertRoomAfter({ ...storage, ...stored }, added);
      return { accepted: true };
    });
    if (outcome.accepted) await afterCommit(async () => this.wakeUps.ask());
    return outcome;
  }

  /** Writes down what was refused for its text, if an audit is kept. */
  async noteRefused(
    { tasks, training }: { tasks: readonly Audited[]; training?: Omit<NewTraining, 'sandbox'> | undefined },
    reason: string,
  ): Promise<void> {
    if (this.config.auditDays === 0) return;
    // The request's own transaction is rolled back.
    await this.transactions.runOutside(() =>
      this.transactions.manager.insert(AuditEntry, refusedEntries(auditOf(tasks, training), reason)),
    );
  }
}

async function look(manager: EntityManager, ownerId: string, maxQueued: number) {
  const [found] = await manager.query<[{ revoked: boolean; queued: number; present: boolean }]>(lookStatement, [
    ownerId,
    maxQueued,
  ]);
  return found;
}

async function insertRows(manager: EntityManager, tasks: readonly NewTask[]): Promise<void> {
  const finetunes = new Map<string, Drawn>();
  for (const { finetuneId: id } of tasks)
    if (id !== null && !finetunes.has(id)) finetunes.set(id, await drawnWith(manager, id));
  const rows = tasks.map((task) => {
    const drawn = finetunes.get(task.finetuneId ?? '') ?? ofNoFinetune;
    return { ...task, ...drawn, ...storageOf(task), status: 'queued' as const, cost: costOf(task) };
  });
  await manager.insert(Task, rows);
  await manager.insert(Drawing, rows);
  const generations = tasks.flatMap(({ id, ownerId, generation }) =>
    generation ? [{ id, ownerId, ...generation }] : [],
  );
  if (generations.length > 0) await manager.insert(Generation, generations);
  const prompts = tasks.flatMap(({ id, ownerId, finetuneId, finetunePrompt }) =>
    finetunePrompt ? [{ id, ownerId, finetuneId: finetuneId ?? '', ...finetunePrompt }] : [],
  );
  if (prompts.length > 0) await manager.insert(FinetunePrompt, prompts);
}

type Drawn = Pick<Drawing, 'weightsHash' | 'weightsScale'> & { queue: TaskQueue };
const ofNoFinetune: Drawn = { weightsHash: null, weightsScale: null, queue: 'drawing' };

/**
 * Keeps the Fine-Tune's training from ending before this transaction: its end then finds the Prompts that wait for it.
 */
async function drawnWith(manager: EntityManager, id: string): Promise<Drawn> {
  // A deletion locks the two in this order.
  const finetune = await manager.findOne(Finetune, { where: { id }, lock: { mode: 'for_key_share' } });
  if (!finetune) return ofNoFinetune;
  const { weightsHash, weightsScale } = finetune;
  if (weightsHash !== null) return { weightsHash, weightsScale, queue: 'drawing' };
  const training = await manager.findOne(Task, { where: { id, kind: 'training' }, lock: { mode: 'pessimistic_read' } });
  if (training && !isTerminated(training.status)) return { ...ofNoFinetune, queue: 'waiting' };
  if (!training) return { ...ofNoFinetune, weightsScale };
  // It has succeeded since the first look.
  if (training.status === 'succeeded') {
    const trained = await manager.findOneByOrFail(Finetune, { id });
    return { weightsHash: trained.weightsHash, weightsScale: trained.weightsScale, queue: 'drawing' };
  }
  throw new UnprocessableError(
    'FineTuneNotTrained',
    `The Fine-Tune has no weights, because ${sourceOf(training)} ${training.status === 'failed' ? 'failed' : 'was canceled'}.`,
  );
}

const sourceOf = ({ queue }: Task): string => (queue === 'weights' ? 'fetching them' : 'its training');

async function insertTraining(
  manager: EntityManager,
  { finetune, sandbox, endUser, training }: NewTraining,
  prompts: readonly NewTask[],
  source: Pick<NeededPictures, 'publicUrl' | 'accountId'>,
): Promise<void> {
  const { id, ownerId, model, createdAt } = finetune;
  await manager.insert(Finetune, { ...finetune, status: 'registered' } as object);
  const waits = {
    status: 'queued',
    queue: training.weightsUrl === null ? 'training' : 'weights',
    cost: costOfTraining(training),
    ...storageOfTraining({ training }),
  } as const;
  await manager.insert(Task, { id, kind: 'training', ownerId, endUser, model, sandbox, createdAt, ...waits });
  await manager.insert(Training, { id, ...training, promptIds: prompts.map((prompt) => prompt.id) });
  await useUploads(manager, { ...source, taskId: id, pictures: picturesToLearn(training.imagesUrl) });
}
