import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

const usersOf = (promptId: string): string => `ARRAY(
  SELECT DISTINCT task.end_user FROM finetune_prompts prompt JOIN tasks task ON task.id IN (prompt.id, prompt.finetune_id)
  WHERE prompt.id = ${promptId} AND task.end_user IS NOT NULL)`;

/** Whom a Style shows. A trigger fills it in, also for older versions, which do not know it. */
export class UsersOfStyles1796370000004 extends ForwardMigration {
  readonly name = 'UsersOfStyles1796370000004';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE styles ADD COLUMN end_users varchar(256)[] NOT NULL DEFAULT '{}';
      CREATE FUNCTION set_users_of_style() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.end_users := ${usersOf('NEW.source_prompt_id')};
        RETURN NEW;
      END $$;
      CREATE TRIGGER styles_users BEFORE INSERT ON styles
        FOR EACH ROW WHEN (NEW.end_users = '{}' AND NEW.source_prompt_id IS NOT NULL) EXECUTE FUNCTION set_users_of_style();`);
  }
}

/** The users of older Styles whose Prompts are there. */
export class UsersOfOlderStyles1796370100004 extends ForwardMigration {
  readonly name = 'UsersOfOlderStyles1796370100004';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `UPDATE styles SET end_users = ${usersOf('source_prompt_id')} WHERE source_prompt_id IS NOT NULL AND end_users = '{}'`,
    );
  }
}
