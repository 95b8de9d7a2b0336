import { Column, Entity, Index, JoinColumn, OneToOne, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber, type Metadata } from '../common/column';
import { Drawing } from '../tasks/drawing';

/** A caller's text-to-image request. The drawing with the same id says what is drawn. */
@Entity('generations')
@Index('generations_owner_seq_idx', ['ownerId', 'seq'])
@Index('generations_account_seq_idx', ['accountId', 'seq'])
export class Generation {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  @OneToOne(() => Drawing, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'generations_id_fkey' })
  drawing: Relation<Drawing>;

  @Column('varchar', { length: 24 }) ownerId: string;

  /** That of its key; a trigger fills it in. All keys of an account share its records. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string;

  /** Order of acceptance, for lists. */
  @Column('bigint', { generated: 'increment', transformer: bigintAsNumber }) seq: number;
  @Column('varchar', { length: 2048, nullable: true }) webhook: string | null;
  @Column('json', { nullable: true }) metadata: Metadata | null;
}
