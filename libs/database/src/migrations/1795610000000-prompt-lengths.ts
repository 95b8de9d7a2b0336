import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The number of tokens that the word of a textual inversion stands for. */
export class PromptLengths1795610000000 implements MigrationInterface {
  name = 'PromptLengths1795610000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "finetunes" ADD "weights_vectors" integer`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "finetunes" DROP COLUMN "weights_vectors"`);
  }
}
