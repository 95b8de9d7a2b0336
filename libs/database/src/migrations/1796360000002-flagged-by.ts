import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** What flagged pictures of a drawing, also in the audit trail. */
export class FlaggedBy1796360000002 extends ForwardMigration {
  readonly name = 'FlaggedBy1796360000002';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE drawings ADD COLUMN flagged_by text[] NOT NULL DEFAULT '{}';
      ALTER TABLE audit_entries ADD COLUMN flagged_by text[] NOT NULL DEFAULT '{}';
      CREATE OR REPLACE FUNCTION note_decision() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE audit_entries SET decision = NEW.status, reason = NEW.error, decided_at = NEW.completed_at,
          (served_by, filtered, flagged, flagged_by) = (
            SELECT max(served_by), coalesce(max(filtered), 0), coalesce(max(cardinality(drawings.flagged)), 0),
              coalesce(max(drawings.flagged_by), '{}')
            FROM drawings WHERE id = NEW.id
          )
        WHERE task_id = NEW.id;
        RETURN NULL;
      END $$;`);
  }
}
