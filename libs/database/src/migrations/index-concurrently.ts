import type { QueryRunner } from 'typeorm';

/**
 * Creates an index on a table that may be large, which stays writable meanwhile. For a migration that has `transaction
 * = false as const` and does nothing else: PostgreSQL refuses this statement in a transaction. The invalid index of an
 * interrupted attempt is dropped first.
 * @param on the part after ON: the table, its columns and a condition.
 */
export async function createIndexConcurrently(queryRunner: QueryRunner, name: string, on: string): Promise<void> {
  // No time limit: the statement blocks nobody, but waits for all open transactions, and a limit would make it start
  // over.
  const [{ before }] = (await queryRunner.query(`SELECT current_setting('lock_timeout') AS before`)) as [
    { before: string },
  ];
  await queryRunner.query('SET lock_timeout = 0');
  await queryRunner.query(`DROP INDEX CONCURRENTLY IF EXISTS "public"."${name}"`);
  await queryRunner.query(`CREATE INDEX CONCURRENTLY "${name}" ON ${on}`);
  await queryRunner.query(`SELECT set_config('lock_timeout', $1, false)`, [before]);
}
