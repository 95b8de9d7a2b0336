import type { QueryRunner } from 'typeorm';
import { ForwardMigration } from './forward-migration';

/** Pictures that callers send, and the tasks that need them. */
export class UploadedPictures1796000100000 extends ForwardMigration {
  readonly name = 'UploadedPictures1796000100000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE uploaded_pictures (
        id varchar(24) NOT NULL,
        owner_id varchar(24) NOT NULL,
        token varchar(24) NOT NULL,
        storage_key varchar(256) NOT NULL,
        content_type varchar(32) NOT NULL,
        width integer NOT NULL,
        height integer NOT NULL,
        bytes integer NOT NULL,
        created_at timestamptz(3) NOT NULL,
        CONSTRAINT uploaded_pictures_token_key UNIQUE (token),
        CONSTRAINT uploaded_pictures_pkey PRIMARY KEY (id)
      );
      CREATE INDEX uploaded_pictures_owner_idx ON uploaded_pictures (owner_id);
      CREATE INDEX uploaded_pictures_created_idx ON uploaded_pictures (created_at);
      CREATE TABLE picture_uses (
        task_id varchar(24) NOT NULL,
        upload_id varchar(24) NOT NULL,
        CONSTRAINT picture_uses_pkey PRIMARY KEY (task_id, upload_id),
        CONSTRAINT picture_uses_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks (id)
          ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
        CONSTRAINT picture_uses_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES uploaded_pictures (id)
          ON DELETE CASCADE
      );
      CREATE INDEX picture_uses_upload_idx ON picture_uses (upload_id)`);
  }
}
