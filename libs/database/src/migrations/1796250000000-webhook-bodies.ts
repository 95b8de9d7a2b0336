import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The body of a delivery, which each of its attempts sends. */
export class WebhookBodies1796250000000 implements MigrationInterface {
  name = 'WebhookBodies1796250000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE webhook_deliveries ADD COLUMN body text');
  }

  public async down(): Promise<void> {
    throw new Error('A backup is the way back.');
  }
}
