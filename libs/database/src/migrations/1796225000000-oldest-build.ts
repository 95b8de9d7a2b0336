import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Which builds may run on the tables; see `OldestBuild`. */
export class OldestBuild1796225000000 extends ForwardMigration {
  readonly name = 'OldestBuild1796225000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE oldest_builds (id integer PRIMARY KEY, knows varchar NOT NULL);
      INSERT INTO oldest_builds (id, knows) VALUES (1, '${this.name}')`);
  }
}
