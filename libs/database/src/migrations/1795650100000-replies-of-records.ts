import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The records that a stored reply names, so that it is deleted with them. The column has a default for processes of the
 * previous version, which do not know it; their replies are deleted after a day.
 */
export class RepliesOfRecords1795650100000 implements MigrationInterface {
  name = 'RepliesOfRecords1795650100000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `ALTER TABLE "idempotent_replies" ADD "record_ids" character varying(24) array NOT NULL DEFAULT '{}'`,
    );
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "idempotent_replies" DROP COLUMN "record_ids"`);
  }
}
