import { Column, Entity, Index, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import type { Metadata } from '../common/column';
import { ImageTask } from '../image-tasks/image-task';

/** A caller's text-to-image request. The image task with the same id draws it. */
@Entity('generations')
@Index('generations_owner_seq_idx', ['ownerId', 'seq'])
export class Generation {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'generations_pkey' })
  id: string;

  @OneToOne(() => ImageTask, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'generations_id_fkey' })
  task: Relation<ImageTask>;

  @Column('varchar', { name: 'owner_id', length: 24 })
  ownerId: string;

  /** Order of acceptance, for lists. */
  @Column('bigint', { name: 'seq', generated: 'increment', transformer: bigintAsNumber })
  seq: number;

  @Column('varchar', { name: 'webhook', length: 2048, nullable: true })
  webhook: string | null;

  @Column('json', { name: 'metadata', nullable: true })
  metadata: Metadata | null;
}
