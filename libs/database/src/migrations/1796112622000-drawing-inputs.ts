import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Sources of a drawing besides its texts; room for the hashes of several Fine-Tunes. */
export class DrawingInputs1796112622000 extends ForwardMigration {
  readonly name = 'DrawingInputs1796112622000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE drawings ADD inputs json, ALTER served_by TYPE varchar(256)');
  }
}
