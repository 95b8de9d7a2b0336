import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation, Unique } from 'typeorm';
import { Task } from '../tasks/task';

/** An uploaded picture that no record uses is kept for this long. */
export const uploadLifeHours = 24;

/** A picture that a caller sent, to draw from it or to train on it. */
@Entity('uploaded_pictures')
@Unique('uploaded_pictures_token_key', ['token'])
@Index('uploaded_pictures_owner_idx', ['ownerId'])
@Index('uploaded_pictures_account_idx', ['accountId', 'createdAt'])
@Index('uploaded_pictures_created_idx', ['createdAt'])
export class UploadedPicture {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24 }) ownerId: string;

  /** That of its key; a trigger fills it in. All keys of an account share its records. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string;

  /** 24 unguessable characters, the secret part of its URL. */
  @Column('varchar', { length: 24 }) token: string;

  /** Key in the image storage: `uploads/<id>.<extension>`; one of an edit is in `uploads/edits`. */
  @Column('varchar', { length: 256 }) storageKey: string;
  @Column('varchar', { length: 32 }) contentType: string;
  @Column('integer') width: number;
  @Column('integer') height: number;
  @Column('integer') bytes: number;
  @Column({ type: 'timestamptz', precision: 3 }) createdAt: Date;
}

/** A task's need of an uploaded picture, which is kept as long as the task. The row goes with either of them. */
@Entity('picture_uses')
@Index('picture_uses_upload_idx', ['uploadId'])
export class PictureUse {
  @PrimaryColumn('varchar', { length: 24 }) taskId: string;
  @PrimaryColumn('varchar', { length: 24 }) uploadId: string;

  /** Checked at the end of the transaction: its statements may come in any order. */
  @ManyToOne(() => Task, { onDelete: 'CASCADE', deferrable: 'INITIALLY DEFERRED' })
  @JoinColumn({ name: 'task_id', foreignKeyConstraintName: 'picture_uses_task_id_fkey' })
  task: Relation<Task>;

  @ManyToOne(() => UploadedPicture, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'upload_id', foreignKeyConstraintName: 'picture_uses_upload_id_fkey' })
  upload: Relation<UploadedPicture>;
}
