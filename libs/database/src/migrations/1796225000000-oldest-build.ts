import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which builds may run on the tables; see `OldestBuild`. */
export class OldestBuild1796225000000 implements MigrationInterface {
  name = 'OldestBuild1796225000000';

  public async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE oldest_builds (id integer PRIMARY KEY, knows varchar NOT NULL);
      INSERT INTO oldest_builds (id, knows) VALUES (1, '${this.name}')`);
  }

  public async down(): Promise<void> {
    throw new Error('A backup is the way back.');
  }
}
