import type { DataSource, Logger } from 'typeorm';

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: Plan[];
}

/**
 * The number of a table's rows that PostgreSQL reads for the SELECTs of some work: they are recorded, then repeated by
 * EXPLAIN (ANALYZE) with the same parameters. Statements that change rows are not counted.
 */
export async function rowsRead(dataSource: DataSource, table: string, work: () => Promise<unknown>): Promise<number> {
  const queries: [string, unknown[] | undefined][] = [];
  const { logger } = dataSource;
  const recorder: Partial<Logger> = {
    logQuery: (query: string, parameters?: unknown[]) => queries.push([query, parameters]),
    logQueryError: () => undefined,
    logQuerySlow: () => undefined,
    log: () => undefined,
  };
  dataSource.logger = recorder as Logger;
  try {
    await work();
  } finally {
    dataSource.logger = logger;
  }
  let sum = 0;
  for (const [query, parameters] of queries) {
    if (!/^\s*(SELECT|WITH)\b/.test(query) || !query.includes(table)) continue;
    sum += await rowsReadBy(dataSource, table, query, parameters);
  }
  return sum;
}

/** The number of a table's rows that PostgreSQL reads for one statement, which is executed. */
export async function rowsReadBy(
  dataSource: DataSource,
  table: string,
  statement: string,
  parameters?: unknown[],
): Promise<number> {
  const [line]: [{ 'QUERY PLAN': [{ Plan: Plan }] }] = await dataSource.query(
    `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${statement}`,
    parameters,
  );
  return readBy(line['QUERY PLAN'][0].Plan, table);
}

function readBy(plan: Plan, table: string): number {
  const passed =
    plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Index Recheck'] ?? 0);
  const own = plan['Relation Name'] === table ? passed * plan['Actual Loops'] : 0;
  return (plan.Plans ?? []).reduce((total, part) => total + readBy(part, table), own);
}
