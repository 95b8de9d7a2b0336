import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The thumbnail of a drawing's first picture. */
export class Thumbnails1796240000000 implements MigrationInterface {
  name = 'Thumbnails1796240000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE images ADD COLUMN thumbnail_bytes integer');
  }

  public async down(): Promise<void> {
    throw new Error('A backup is the way back.');
  }
}
