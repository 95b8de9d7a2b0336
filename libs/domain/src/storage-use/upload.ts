import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { bigintAsNumber } from '../common/column';

/** A file on its way in, and the room that is kept for it. Its table is not logged: a crash of the database ends every upload. */
@Entity('uploads')
@Index('uploads_owner_idx', ['ownerId'])
export class Upload {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'uploads_pkey' })
  id: string;

  @Column('varchar', { name: 'owner_id', length: 24 })
  ownerId: string;

  @Column('bigint', { name: 'bytes', transformer: bigintAsNumber })
  bytes: number;

  /** When the process that receives it last said so. */
  @Column({ type: 'timestamptz', name: 'renewed_at', default: () => 'now()' })
  renewedAt: Date;
}
