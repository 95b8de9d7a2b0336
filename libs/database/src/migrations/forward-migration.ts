import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A migration without a way back but a backup. */
export abstract class ForwardMigration implements MigrationInterface {
  abstract readonly name: string;

  abstract up(queryRunner: QueryRunner): Promise<void>;

  async down(): Promise<void> {
    throw new Error('A backup is the way back.');
  }
}
