import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Rows per statement, so that each row is locked only briefly. */
const batchSize = 1_000;

interface Batch {
  owner_id: string;
  key: string;
}

/** Fills in the records that older replies name. Each batch is a transaction of its own, and can be repeated. */
export class RecordsOfOldReplies1795650110000 implements MigrationInterface {
  name = 'RecordsOfOldReplies1795650110000';
  transaction = false as const;

  public async up(queryRunner: QueryRunner): Promise<void> {
    for (let last: Batch | undefined = { owner_id: '', key: '' }; last;) last = await fill(queryRunner, last);
  }

  public async down(): Promise<void> {
    // The column goes with the migration that made it.
  }
}

/**
 * The body is the output of JSON.stringify, searched as text: PostgreSQL rejects some valid JSON.
 * @returns where the batch ended.
 */
async function fill(queryRunner: QueryRunner, { owner_id: ownerId, key }: Batch): Promise<Batch | undefined> {
  const [last] = (await queryRunner.query(
    `WITH batch AS (
       SELECT owner_id, key FROM idempotent_replies WHERE (owner_id, key) > ($1, $2) ORDER BY owner_id, key LIMIT ${batchSize}
     ),
     filled AS (
       UPDATE idempotent_replies reply SET record_ids = ARRAY(
         SELECT DISTINCT found[1] FROM regexp_matches(reply.body, '"id":"([A-Za-z0-9_-]{24})"', 'g') AS found
       )
       FROM batch WHERE reply.owner_id = batch.owner_id AND reply.key = batch.key AND reply.record_ids = '{}'
     )
     SELECT owner_id, key FROM batch ORDER BY owner_id DESC, key DESC LIMIT 1`,
    [ownerId, key],
  )) as Batch[];
  return last;
}
