import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Weights that are fetched, and how many of a file's tensors met no layer. */
export class FetchedWeights1796320000000 extends ForwardMigration {
  readonly name = 'FetchedWeights1796320000000';

  /** A binary that does not know the count writes other weights: the trigger forgets the count of those before. */
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE trainings ADD COLUMN weights_url varchar(2048), ADD COLUMN weights_sha256 varchar(64);
      ALTER TABLE finetunes ADD COLUMN weights_unmatched integer;
      CREATE FUNCTION forget_unmatched_weights() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          NEW.weights_unmatched = NULL;
          RETURN NEW;
        END $$;
      CREATE TRIGGER finetunes_weights_key BEFORE UPDATE OF weights_key ON finetunes
        FOR EACH ROW EXECUTE FUNCTION forget_unmatched_weights();`);
  }
}
