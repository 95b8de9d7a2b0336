import type { DataSource } from 'typeorm';

/**
 * Does something in one process of all at a time, under an advisory lock of a session. It takes no transaction: what is
 * slow must not hold back the vacuum of every table.
 * @param lock a number that nothing else locks.
 * @returns what `work` does; undefined at once while another process has the lock.
 */
export async function underSessionLock<T>(
  dataSource: DataSource,
  lock: number,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const session = dataSource.createQueryRunner();
  try {
    const [{ ours }] = (await session.query('SELECT pg_try_advisory_lock($1) AS ours', [lock])) as [{ ours: boolean }];
    if (!ours) return undefined;
    try {
      return await work();
    } finally {
      await session.query('SELECT pg_advisory_unlock($1)', [lock]);
    }
  } finally {
    await session.release();
  }
}
