import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A Style may leave guidance and steps to the model that draws, as the public ones do. */
export class StylesWithoutControls1795780000000 implements MigrationInterface {
  name = 'StylesWithoutControls1795780000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE "styles" ALTER "cfg" DROP NOT NULL, ALTER "steps" DROP NOT NULL`);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`UPDATE "styles" SET "cfg" = coalesce("cfg", 7.5), "steps" = coalesce("steps", 30)
                             WHERE "cfg" IS NULL OR "steps" IS NULL`);
    await queryRunner.query(`ALTER TABLE "styles" ALTER "cfg" SET NOT NULL, ALTER "steps" SET NOT NULL`);
  }
}
