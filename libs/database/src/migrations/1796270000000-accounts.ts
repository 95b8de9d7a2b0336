import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';
import { createIndexConcurrently } from './index-concurrently';

const tablesOfRecords = [
  'collections',
  'finetune_prompts',
  'finetunes',
  'generations',
  'styles',
  'tasks',
  'uploaded_pictures',
] as const;

/** Accounts, and whose pictures are. Triggers fill the account in, also for older versions, which do not know it. */
export class Accounts1796270000000 extends ForwardMigration {
  readonly name = 'Accounts1796270000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE api_keys ADD COLUMN account_id varchar(24), ADD COLUMN account varchar(200);
      UPDATE api_keys SET account_id = id;
      ALTER TABLE api_keys ALTER COLUMN account_id SET NOT NULL;
      CREATE INDEX api_keys_account_idx ON api_keys (account_id);
      CREATE FUNCTION set_account_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.account_id := NEW.id;
        RETURN NEW;
      END $$;
      CREATE TRIGGER api_keys_account BEFORE INSERT ON api_keys
        FOR EACH ROW WHEN (NEW.account_id IS NULL) EXECUTE FUNCTION set_account_of_key();
      CREATE FUNCTION set_account() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.account_id := coalesce((SELECT account_id FROM api_keys WHERE id = NEW.owner_id), NEW.owner_id);
        RETURN NEW;
      END $$;
      ALTER TABLE tasks ADD COLUMN end_user varchar(256);`);
    for (const table of tablesOfRecords)
      await queryRunner.query(`
        ALTER TABLE ${table} ADD COLUMN account_id varchar(24);
        CREATE TRIGGER ${table}_account BEFORE INSERT ON ${table}
          FOR EACH ROW WHEN (NEW.account_id IS NULL AND NEW.owner_id IS NOT NULL) EXECUTE FUNCTION set_account();`);
  }
}

/** Rows that are locked at a time. */
const batchSize = 5_000;

/** Parameter: the id to begin after. Until now each key was an account of its own. */
const fillStatement = (table: string): string => `
WITH batch AS (SELECT id FROM ${table} WHERE id > $1 ORDER BY id LIMIT ${batchSize}),
filled AS (
  UPDATE ${table} record SET account_id = owner_id FROM batch
  WHERE record.id = batch.id AND account_id IS NULL AND owner_id IS NOT NULL
)
SELECT max(id) AS last FROM batch`;

/** The accounts of older records, a few rows at a time: the service may run meanwhile. */
export class AccountsOfRecords1796270100000 extends ForwardMigration {
  readonly name = 'AccountsOfRecords1796270100000';
  readonly transaction = false as const;

  async up(queryRunner: QueryRunner): Promise<void> {
    for (const table of tablesOfRecords)
      for (let after: string | null = ''; after !== null;) {
        const [{ last }] = (await queryRunner.query(fillStatement(table), [after])) as [{ last: string | null }];
        after = last;
      }
  }
}

const indexes = {
  collections_account_seq_idx: 'collections (account_id, seq)',
  finetunes_account_seq_idx: 'finetunes (account_id, seq)',
  generations_account_seq_idx: 'generations (account_id, seq)',
  tasks_account_idx: 'tasks (account_id, created_at, id)',
  tasks_end_user_idx: 'tasks (account_id, end_user, created_at) WHERE end_user IS NOT NULL',
  uploaded_pictures_account_idx: 'uploaded_pictures (account_id, created_at)',
};

/** The lists of an account, and what it has of a user. */
export class AccountIndexes1796270200000 extends ForwardMigration {
  readonly name = 'AccountIndexes1796270200000';
  readonly transaction = false as const;

  async up(queryRunner: QueryRunner): Promise<void> {
    for (const [name, on] of Object.entries(indexes)) await createIndexConcurrently(queryRunner, name, on);
  }
}
