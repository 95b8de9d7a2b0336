import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Who asked for what; a trigger writes what became of it, also for workers of older versions. */
export class AuditEntries1796350000000 extends ForwardMigration {
  readonly name = 'AuditEntries1796350000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE audit_entries (
        id bigserial NOT NULL,
        at timestamptz(3) NOT NULL,
        owner_id varchar(24) NOT NULL,
        account_id varchar(24),
        end_user varchar(256),
        task_id varchar(24),
        kind varchar(16) NOT NULL,
        model varchar(64) NOT NULL,
        served_by varchar(256),
        prompt text,
        decision varchar(16) NOT NULL,
        reason text,
        filtered integer NOT NULL DEFAULT 0,
        flagged integer NOT NULL DEFAULT 0,
        decided_at timestamptz(3),
        CONSTRAINT audit_entries_pkey PRIMARY KEY (id)
      );
      CREATE INDEX audit_entries_at_idx ON audit_entries (at);
      CREATE INDEX audit_entries_task_idx ON audit_entries (task_id) WHERE task_id IS NOT NULL;
      CREATE INDEX audit_entries_user_idx ON audit_entries (end_user) WHERE end_user IS NOT NULL;
      CREATE TRIGGER audit_entries_account BEFORE INSERT ON audit_entries
        FOR EACH ROW WHEN (NEW.account_id IS NULL) EXECUTE FUNCTION set_account();
      CREATE FUNCTION note_decision() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE audit_entries SET decision = NEW.status, reason = NEW.error, decided_at = NEW.completed_at,
          (served_by, filtered, flagged) = (
            SELECT max(served_by), coalesce(max(filtered), 0), coalesce(max(cardinality(drawings.flagged)), 0)
            FROM drawings WHERE id = NEW.id
          )
        WHERE task_id = NEW.id;
        RETURN NULL;
      END $$;
      -- At the commit, when the drawing has its results too.
      CREATE CONSTRAINT TRIGGER tasks_decision AFTER UPDATE OF status ON tasks DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.status IN ('succeeded', 'failed', 'canceled')) EXECUTE FUNCTION note_decision();
      CREATE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE audit_entries SET decision = 'deleted', decided_at = clock_timestamp() WHERE task_id = OLD.id;
        RETURN NULL;
      END $$;
      CREATE TRIGGER tasks_deletion AFTER DELETE ON tasks
        FOR EACH ROW WHEN (OLD.status IN ('queued', 'processing')) EXECUTE FUNCTION note_deletion();`);
  }
}
