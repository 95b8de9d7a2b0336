import type { DataSource } from 'typeorm';

/**
 * Runs `work` in one process at a time, under an advisory lock of a session. Not in a transaction: slow work must not
 * hold back the vacuum of every table.
 * @param lock a number that nothing else locks.
 * @returns the result of `work`; undefined at once while another process has the lock.
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
