import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation, Unique } from 'typeorm';
import { Task } from './task';

/** One finished picture: its storage key and the secret part of its URL. */
@Entity('images')
@Unique('images_token_key', ['token'])
@Index('images_task_idx', ['taskId', 'index'], { unique: true })
export class Image {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24 }) taskId: string;

  @ManyToOne(() => Task, (task) => task.images, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'task_id', foreignKeyConstraintName: 'images_task_id_fkey' })
  task: Relation<Task>;

  @Column('integer') index: number;

  /** 24 unguessable characters; the URL is `<PUBLIC_URL>/images/<token>.<extension>`. */
  @Column('varchar', { length: 24 }) token: string;

  /** Key in the image storage: `<task id>/<attempt>/<index>.<extension>`. */
  @Column('varchar', { length: 256 }) storageKey: string;
  @Column('varchar', { length: 32 }) contentType: string;
  @Column('integer') width: number;
  @Column('integer') height: number;
  @Column('integer') bytes: number;

  /** Null for a picture without a thumbnail; otherwise its thumbnail stands beside it in the storage. */
  @Column('integer', { nullable: true }) thumbnailBytes: number | null;
}
