import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { bigintAsNumber } from '../common/column';

/**
 * An upload in progress, and the space reserved for it. Its table is unlogged: a crash of the
 * database ends every upload.
 */
@Entity('uploads')
@Index('uploads_owner_idx', ['ownerId'])
export class Upload {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'uploads_pkey' })
  id: string;

  @Column('varchar', { name: 'owner_id', length: 24 })
  ownerId: string;

  @Column('bigint', { name: 'bytes', transformer: bigintAsNumber })
  bytes: number;

  /** Time of the last heartbeat of the process that receives it. */
  @Column({ type: 'timestamptz', name: 'renewed_at', default: () => 'now()' })
  renewedAt: Date;
}
