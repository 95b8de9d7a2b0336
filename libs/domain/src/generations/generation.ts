import { Column, Entity, Index, JoinColumn, OneToOne, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber, type Metadata } from '../common/column';
import { Drawing } from '../tasks/drawing';

/** A caller's text-to-image request. The drawing with the same id says what is drawn. */
@Entity('generations')
@Index('generations_owner_seq_idx', ['ownerId', 'seq'])
export class Generation {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'generations_pkey' })
  id: string;

  @OneToOne(() => Drawing, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'generations_id_fkey' })
  drawing: Relation<Drawing>;

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
