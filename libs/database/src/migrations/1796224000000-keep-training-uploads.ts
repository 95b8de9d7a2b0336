import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Whether a key keeps the uploads of its trainings. */
export class KeepTrainingUploads1796224000000 extends ForwardMigration {
  readonly name = 'KeepTrainingUploads1796224000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE api_keys ADD COLUMN keep_training_uploads boolean NOT NULL DEFAULT false');
  }
}
