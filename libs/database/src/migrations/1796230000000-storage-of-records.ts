import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** When an attempt began; what waiting tasks keep of their owner's storage; what records take of it. */
export class StorageOfRecords1796230000000 extends ForwardMigration {
  readonly name = 'StorageOfRecords1796230000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE tasks ADD COLUMN claimed_at timestamptz(3), ADD COLUMN reserved_bytes bigint NOT NULL DEFAULT 0,
        ADD COLUMN record_bytes integer NOT NULL DEFAULT 0;
      ALTER TABLE styles ADD COLUMN record_bytes integer NOT NULL DEFAULT 0;
      ALTER TABLE storage_use ADD COLUMN reserved_bytes bigint NOT NULL DEFAULT 0,
        ADD COLUMN record_bytes bigint NOT NULL DEFAULT 0;`);
  }
}
