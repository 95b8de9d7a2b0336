import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** The body of a delivery, which each of its attempts sends. */
export class WebhookBodies1796250000000 extends ForwardMigration {
  readonly name = 'WebhookBodies1796250000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE webhook_deliveries ADD COLUMN body text');
  }
}
