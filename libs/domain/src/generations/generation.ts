import { Column, Entity, Index, JoinColumn, OneToOne, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber, type Metadata } from '../common/column';
import { Drawing } from '../tasks/drawing';

/** A caller's text-to-image request. The drawing with the same id says what is drawn. */
@Entity('generations')
@Index('generations_owner_seq_idx', ['ownerId', 'seq'])
export class Generation {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  @OneToOne(() => Drawing, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'generations_id_fkey' })
  drawing: Relation<Drawing>;

  @Column('varchar', { length: 24 }) ownerId: string;

  /** Order of acceptance, for lists. */
  @Column('bigint', { generated: 'increment', transformer: bigintAsNumber }) seq: number;
  @Column('varchar', { length: 2048, nullable: true }) webhook: string | null;
  @Column('json', { nullable: true }) metadata: Metadata | null;
}
