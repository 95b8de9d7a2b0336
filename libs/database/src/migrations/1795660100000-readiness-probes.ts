import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The row that readiness checks write. */
export class ReadinessProbes1795660100000 implements MigrationInterface {
  name = 'ReadinessProbes1795660100000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE "readiness_probes" (
        "id" integer NOT NULL,
        "probed_at" TIMESTAMP(3) WITH TIME ZONE NOT NULL,
        CONSTRAINT "readiness_probes_pkey" PRIMARY KEY ("id")
      )
    `);
  }

  public async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE "readiness_probes"`);
  }
}
