import { Column, Entity, Index, OneToMany, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import { Style } from '../styles/style';

/** A named set of Styles. Without an owner it is public: everyone can read and apply it, nobody can change it. */
@Entity('collections')
@Index('collections_owner_seq_idx', ['ownerId', 'seq'])
@Index('collections_account_seq_idx', ['accountId', 'seq'])
export class Collection {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24, nullable: true }) ownerId: string | null;

  /** That of its key; a trigger fills it in. All keys of an account share its records. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string | null;
  @Column('bigint', { generated: 'increment', transformer: bigintAsNumber }) seq: number;
  @Column('varchar', { length: 200 }) name: string;
  @Column({ type: 'timestamptz', precision: 3 }) createdAt: Date;
  @OneToMany(() => Style, (style) => style.collection) styles: Relation<Style>[];
}
