import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whether a key keeps the uploads of its trainings. */
export class KeepTrainingUploads1796224000000 implements MigrationInterface {
  name = 'KeepTrainingUploads1796224000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE api_keys ADD COLUMN keep_training_uploads boolean NOT NULL DEFAULT false');
  }

  public async down(): Promise<void> {
    throw new Error('A backup is the way back.');
  }
}
