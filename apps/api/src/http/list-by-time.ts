import type { List } from './list';

/** Rows of one millisecond that positions tell apart; later ones share the last position. */
const ranks = 1024;

/** A row of a list by time: `rank` counts the rows of the same millisecond with a smaller id. */
export interface TimedRow {
  id: string;
  at: Date;
  rank: number;
}

/**
 * The part of a list that is wanted, for SQL: at most `count` rows, those before `at`, and of that
 * millisecond those below `rank`.
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
  present: (row: T) => object,
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
      return rows.map((row) => ({ id: row.id, seq: positionOf(row), json: JSON.stringify(present(row)) }));
    },
  };
}
