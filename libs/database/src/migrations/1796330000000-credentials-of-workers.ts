import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Whether a worker signs what it draws. */
export class CredentialsOfWorkers1796330000000 extends ForwardMigration {
  readonly name = 'CredentialsOfWorkers1796330000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE inference_workers ADD COLUMN credentials json`);
  }
}
