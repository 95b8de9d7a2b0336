import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** A drawing whose size was asked for, or is that of a picture, has no ratio. */
export class AskedSizes1796290000000 extends ForwardMigration {
  readonly name = 'AskedSizes1796290000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE drawings ALTER COLUMN aspect_ratio DROP NOT NULL');
  }
}
