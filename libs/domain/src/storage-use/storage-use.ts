import { Column, Entity, PrimaryColumn } from 'typeorm';
import { bigintAsNumber } from '../common/column';

/** What a caller has stored, moved in the transactions that add and remove the rows of the files, so that nothing counts rows. */
@Entity('storage_use')
export class StorageUse {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'storage_use_pkey' })
  ownerId: string;

  @Column('bigint', { name: 'picture_bytes', default: 0, transformer: bigintAsNumber })
  pictureBytes: number;

  @Column('bigint', { name: 'weight_bytes', default: 0, transformer: bigintAsNumber })
  weightBytes: number;

  /** When it was last compared with the rows; null: never, and pictures of a version before may be missing in it. */
  @Column({ type: 'timestamptz', name: 'counted_at', nullable: true })
  countedAt: Date | null;
}
