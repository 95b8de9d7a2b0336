import { Finetune } from '@app/domain';
import { Transactions } from '@app/queue';
import type { ImageStorage } from '@app/storage';
import {
  addStoredOf,
  dropUploads,
  forgetReplies,
  forgetUserInUsage,
  removeFinetune,
  removeTasks,
  styleThumbnailsFolder,
  trainingFolder,
  weightsFolderOf,
} from '@app/tasks';
import type { DataSource, EntityManager } from 'typeorm';

/** Tasks of one transaction. */
const batchSize = 100;

/** Numbers of what was erased, and the files that the store did not remove. */
export interface ErasureReport {
  generations: number;
  prompts: number;
  finetunes: number;
  styles: number;
  pictures: number;
  uploads: number;
  deliveries: number;
  /** Rows of usage that no longer say whose they are; the sums of a key stay. */
  usage_rows: number;
  audit_entries: number;
  /** The service removes them within two hours. */
  files_left: string[];
}

interface Erased {
  counts: Partial<ErasureReport>;
  /** Folders and files in the storage. */
  files: string[];
}

/**
 * Erases what the records say of one user: records and what was made of them, whatever state they are in. The service
 * may draw meanwhile. Again is harmless, and needed where requests of the user still come in.
 */
export class Erasure {
  private readonly transactions: Transactions;

  /** @param accounts their ids; undefined: all */
  constructor(
    private readonly dataSource: DataSource,
    private readonly storage: ImageStorage,
    private readonly user: string,
    private readonly accounts?: readonly string[],
  ) {
    this.transactions = new Transactions(dataSource);
  }

  async run(): Promise<ErasureReport> {
    const report: ErasureReport = {
      generations: 0,
      prompts: 0,
      finetunes: 0,
      styles: 0,
      pictures: 0,
      uploads: 0,
      deliveries: 0,
      usage_rows: 0,
      audit_entries: 0,
      files_left: [],
    };
    for (const eraseSome of [this.eraseFinetune, this.eraseDrawings, this.eraseStyles])
      for (let erased = await eraseSome(); erased; erased = await eraseSome()) {
        for (const [name, count] of Object.entries(erased.counts) as [
          Exclude<keyof ErasureReport, 'files_left'>,
          number,
        ][])
          report[name] += count;
        for (const file of erased.files) await this.storage.removeAll(file).catch(() => report.files_left.push(file));
      }
    // Last: a record that is deleted may still add to them.
    report.usage_rows = await this.transactions.run((manager) => forgetUserInUsage(manager, this.user, this.accounts));
    report.audit_entries += await this.eraseOtherEntries();
    return report;
  }

  /** In SQL: the row is of the user. Parameters: `this.whose`. */
  private readonly isTheirs = 'end_user = $1 AND ($2::varchar[] IS NULL OR account_id = ANY($2))';

  private get whose(): [string, readonly string[] | null] {
    return [this.user, this.accounts ?? null];
  }

  /** A Fine-Tune, or one that was deleted before, with all that was drawn with it. */
  private readonly eraseFinetune = (): Promise<Erased | undefined> =>
    this.transactions.run(async (manager) => {
      const [found] = await manager.query<{ id: string; accountId: string }[]>(
        `SELECT id, account_id AS "accountId" FROM tasks WHERE kind = 'training' AND ${this.isTheirs}
         UNION ALL SELECT task_id, account_id FROM audit_entries
         WHERE kind = 'training' AND task_id IS NOT NULL AND ${this.isTheirs} LIMIT 1`,
        this.whose,
      );
      if (!found) return undefined;
      const { id, accountId } = found;
      const finetune = await manager.findOne(Finetune, { where: { id }, lock: { mode: 'pessimistic_write' } });
      const generations = await idsOf(manager, drawnWithStatement, [id, accountId]);
      const drawings = await eraseTasks(manager, generations);
      const prompts = await idsOf(manager, 'SELECT id FROM finetune_prompts WHERE finetune_id = $1 ORDER BY id', [id]);
      const styles = await removeStyles(manager, prompts);
      const counts = await eraseEntries(manager, [id, ...prompts]);
      const { drawn, uploads } = finetune ? await removeFinetune(manager, finetune) : { drawn: [], uploads: [] };
      return {
        counts: {
          generations: generations.length,
          prompts: prompts.length,
          finetunes: finetune ? 1 : 0,
          styles,
          uploads: drawings.uploads.length + uploads.length,
          pictures: drawings.counts.pictures + counts.pictures,
          deliveries: drawings.counts.deliveries + counts.deliveries,
          audit_entries: drawings.counts.audit_entries + counts.audit_entries,
        },
        files: [
          ...[...drawings.drawn, ...drawings.uploads, ...drawn, ...uploads],
          ...[...prompts.map(styleThumbnailsFolder), weightsFolderOf(id), trainingFolder(id)],
        ],
      };
    });

  private readonly eraseDrawings = (): Promise<Erased | undefined> =>
    this.transactions.run(async (manager) => {
      const found = await manager.query<{ id: string; kind: string }[]>(
        `SELECT id, kind FROM tasks WHERE kind <> 'training' AND ${this.isTheirs} ORDER BY id LIMIT ${batchSize}`,
        this.whose,
      );
      if (found.length === 0) return undefined;
      const ids = found.map(({ id }) => id);
      const prompts = found.filter(({ kind }) => kind === 'prompt').map(({ id }) => id);
      // A deletion locks the row of a Prompt first and the task next.
      await manager.query('SELECT FROM finetune_prompts WHERE id = ANY($1) ORDER BY id FOR UPDATE', [prompts]);
      const styles = await removeStyles(manager, prompts);
      const { counts, drawn, uploads } = await eraseTasks(manager, ids);
      return {
        counts: {
          ...counts,
          generations: ids.length - prompts.length,
          prompts: prompts.length,
          styles,
          uploads: uploads.length,
        },
        files: [...drawn, ...prompts.map(styleThumbnailsFolder), ...uploads],
      };
    });

  /** Styles whose Prompt, or Fine-Tune, was deleted before. */
  private readonly eraseStyles = (): Promise<Erased | undefined> =>
    this.transactions.run(async (manager) => {
      const prompts = await idsOf(
        manager,
        `SELECT DISTINCT source_prompt_id AS id FROM styles
         WHERE $1 = ANY(end_users) AND ($2::varchar[] IS NULL OR account_id = ANY($2)) LIMIT ${batchSize}`,
        this.whose,
      );
      if (prompts.length === 0) return undefined;
      return { counts: { styles: await removeStyles(manager, prompts) }, files: prompts.map(styleThumbnailsFolder) };
    });

  /** What the audit trail has besides: of requests that made no record, and of records that were deleted before. */
  private async eraseOtherEntries(): Promise<number> {
    const [, count] = await this.dataSource.query<[unknown, number]>(
      `DELETE FROM audit_entries WHERE ${this.isTheirs}`,
      this.whose,
    );
    return count;
  }
}

const idsOf = async (manager: EntityManager, statement: string, parameters: unknown[]): Promise<string[]> =>
  (await manager.query<{ id: string }[]>(statement, parameters)).map(({ id }) => id);

/** Generations that combine a Fine-Tune. Parameters: its id and its account. */
const drawnWithStatement = `
SELECT task.id FROM tasks task JOIN drawings drawing ON drawing.id = task.id
WHERE task.kind = 'generation' AND task.account_id = $2
  AND EXISTS (SELECT FROM json_array_elements(drawing.inputs -> 'finetunes') used WHERE used ->> 'id' = $1)
ORDER BY task.id`;

/** Styles have the text and a picture of the Prompt that they were made of. */
async function removeStyles(manager: EntityManager, promptIds: readonly string[]): Promise<number> {
  const [removed] = await manager.query<[{ id: string; ownerId: string; bytes: number }[], number]>(
    `DELETE FROM styles WHERE source_prompt_id = ANY($1) RETURNING id, owner_id AS "ownerId", record_bytes AS bytes`,
    [promptIds],
  );
  await forgetReplies(
    manager,
    removed.map(({ id }) => id),
  );
  await addStoredOf(
    manager,
    removed.map(({ ownerId, bytes }) => ({ ownerId, recordBytes: -bytes })),
  );
  return removed.length;
}

/** Deletes Generations and Prompts with what the audit trail says of them. */
async function eraseTasks(manager: EntityManager, ids: readonly string[]) {
  await manager.query('SELECT FROM tasks WHERE id = ANY($1) ORDER BY id FOR UPDATE', [ids]);
  const counts = await eraseEntries(manager, ids);
  const uploads = await dropUploads(manager, ids);
  const left = await removeTasks(manager, ids);
  return { counts, drawn: left.drawn, uploads: [...uploads, ...left.uploads] };
}

/** Deletes what the audit trail says of tasks. @returns how much, and numbers of rows that go with the tasks */
async function eraseEntries(manager: EntityManager, taskIds: readonly string[]) {
  const [, entries] = await manager.query<[unknown, number]>('DELETE FROM audit_entries WHERE task_id = ANY($1)', [
    taskIds,
  ]);
  const [counts] = await manager.query<[Pick<ErasureReport, 'pictures' | 'deliveries'>]>(
    `SELECT (SELECT count(*)::integer FROM images WHERE task_id = ANY($1)) AS pictures,
       (SELECT count(*)::integer FROM webhook_deliveries WHERE task_id = ANY($1)) AS deliveries`,
    [taskIds],
  );
  return { ...counts, audit_entries: entries };
}
