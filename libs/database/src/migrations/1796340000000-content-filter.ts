import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** What becomes of flagged pictures of a key, and what became of those of a drawing. */
export class ContentFilter1796340000000 extends ForwardMigration {
  readonly name = 'ContentFilter1796340000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE api_keys ADD COLUMN filter varchar(8) NOT NULL DEFAULT 'off';
      ALTER TABLE drawings ADD COLUMN filtered integer NOT NULL DEFAULT 0,
        ADD COLUMN flagged integer[] NOT NULL DEFAULT '{}';`);
  }
}
