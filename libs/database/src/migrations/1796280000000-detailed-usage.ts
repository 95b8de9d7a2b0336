import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Pixels of a day, and the usage of users and of combined Fine-Tunes beside that of days. */
export class DetailedUsage1796280000000 extends ForwardMigration {
  readonly name = 'DetailedUsage1796280000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE daily_usage ADD COLUMN pixels bigint NOT NULL DEFAULT 0;
      CREATE TABLE detailed_usage (
        owner_id varchar(24) NOT NULL,
        day date NOT NULL,
        model varchar(64) NOT NULL,
        finetune_id varchar(24) NOT NULL,
        images bigint NOT NULL,
        steps bigint NOT NULL,
        pixels bigint NOT NULL DEFAULT 0,
        compute_seconds double precision NOT NULL,
        end_user varchar(256) NOT NULL,
        finetunes varchar(128) NOT NULL,
        CONSTRAINT detailed_usage_pkey PRIMARY KEY (owner_id, day, model, finetune_id, end_user, finetunes)
      );`);
  }
}
