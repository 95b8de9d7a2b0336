import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** The thumbnail of a drawing's first picture. */
export class Thumbnails1796240000000 extends ForwardMigration {
  readonly name = 'Thumbnails1796240000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE images ADD COLUMN thumbnail_bytes integer');
  }
}
