import type { TaskQueryDto } from '@app/domain/http';
import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** An element of a list, as JSON. */
export interface ListElement {
  id: string;
  /** Its position: the list runs from the highest to the lowest. */
  seq: number;
  json: string;
}

/** A caller's list, newest first, that can be read from any position. */
export interface List {
  /** Undefined if no element has this id. */
  seqOf(id: string): Promise<number | undefined>;
  /** The newest `count` elements, or those after the position `after`. */
  read(count: number, after?: number): Promise<ListElement[]>;
}

type Row = ObjectLiteral & { id: string; seq: number };

/**
 * The list of a query's rows, by the `seq` of its main alias. A metadata column is passed on as stored text: it is most
 * of a long list, and nothing here reads it.
 * @param present makes the records of some rows, in order.
 * @param narrow limits what is read. Any element of the whole list is a position.
 */
export function listOf<T extends Row>(
  query: SelectQueryBuilder<T>,
  present: (rows: T[]) => object[] | Promise<object[]>,
  narrow: (query: SelectQueryBuilder<T>) => void = () => undefined,
): List {
  const { alias, expressionMap } = query;
  const hasMetadata = expressionMap.mainAlias?.metadata.columns.some(({ propertyName }) => propertyName === 'metadata');
  return {
    async seqOf(id) {
      const found = await query
        .clone()
        .select(`${alias}.seq`)
        .andWhere(`${alias}.id = :listed`, { listed: id })
        .getOne();
      return found?.seq;
    },
    async read(count, after) {
      const batch = query.clone().orderBy(`${alias}.seq`, 'DESC').limit(count);
      narrow(batch);
      if (after !== undefined) batch.andWhere(`${alias}.seq < :after`, { after });
      if (hasMetadata) {
        const { columns = [] } = expressionMap.mainAlias?.metadata ?? {};
        const others = columns.filter(({ propertyName }) => propertyName !== 'metadata');
        batch.expressionMap.selects = batch.expressionMap.selects.filter(({ selection }) => selection !== alias);
        batch.addSelect(others.map(({ propertyName }) => `${alias}.${propertyName}`));
        batch.addSelect(`${alias}.metadata::text`, 'metadata_text');
      }
      const { entities, raw } = await batch.getRawAndEntities<{ metadata_text?: string | null }>();
      const records = await present(entities);
      return entities.map(({ id, seq }, index) => ({
        id,
        seq,
        json: written(records[index], raw[index].metadata_text),
      }));
    },
  };
}

/** Strings escape quotation marks, so the placeholder occurs only once. */
function written(record: object, metadata: string | null | undefined): string {
  if (metadata === undefined) return JSON.stringify(record);
  return JSON.stringify({ ...record, metadata: null }).replace(
    '"metadata":null',
    () => `"metadata":${metadata ?? 'null'}`,
  );
}

/** Positions tell this many rows of one millisecond apart; later ones share the last position. */
const ranks = 1024;

/** A row of a list by time: `rank` counts the rows of the same millisecond with a smaller id. */
export interface TimedRow {
  id: string;
  at: Date;
  rank: number;
}

/**
 * The requested part of a list, for SQL: at most `count` rows, those before `at`, and of that millisecond those below
 * `rank`.
 */
export interface TimedPage {
  count: number;
  at: string;
  rank: number;
}

/**
 * The list of rows that have a time and no number of their own, newest first. The position of a row is made of its time
 * and its rank; if another row of the same millisecond is deleted, a row may be shown twice, but none is passed over.
 * @param find the row with this id, if it is in the list
 */
export function listByTime<T extends TimedRow>(
  read: (page: TimedPage) => Promise<T[]>,
  find: (id: string) => Promise<TimedRow | undefined>,
  present: (row: T) => object | Promise<object>,
): List {
  const positionOf = ({ at, rank }: TimedRow): number => at.getTime() * ranks + Math.min(rank, ranks - 1);
  return {
    async seqOf(id) {
      const row = await find(id);
      return row && positionOf(row);
    },
    async read(count, after) {
      const before =
        after === undefined
          ? { at: 'infinity', rank: 0 }
          : { at: new Date(Math.floor(after / ranks)).toISOString(), rank: after % ranks };
      const rows = await read({ count, ...before });
      const records = await Promise.all(rows.map(async (row) => present(row)));
      return rows.map((row, i) => ({ id: row.id, seq: positionOf(row), json: JSON.stringify(records[i]) }));
    },
  };
}

/** Limits a query to some of its rows; its tasks have the alias `task`. */
export function filterTasks<T extends ObjectLiteral>(
  query: SelectQueryBuilder<T>,
  { status, created_after: createdAfter, created_before: createdBefore, user }: TaskQueryDto,
): void {
  if (status) query.andWhere('task.status = :status', { status });
  // The index of users begins with their account.
  if (user !== undefined)
    query.andWhere(`task.account_id = ${query.alias}.account_id AND task.end_user = :user`, { user });
  if (createdAfter) query.andWhere('task.created_at > :createdAfter', { createdAfter });
  if (createdBefore) query.andWhere('task.created_at < :createdBefore', { createdBefore });
}
