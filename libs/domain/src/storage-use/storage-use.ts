import { Column, Entity, PrimaryColumn } from 'typeorm';
import { bigintAsNumber } from '../common/column';

/**
 * The storage use of a caller, updated in the transactions that insert and delete the rows of its files, so that no
 * request has to count rows.
 */
@Entity('storage_use')
export class StorageUse {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'storage_use_pkey' })
  ownerId: string;

  @Column('bigint', { name: 'picture_bytes', default: 0, transformer: bigintAsNumber })
  pictureBytes: number;

  @Column('bigint', { name: 'weight_bytes', default: 0, transformer: bigintAsNumber })
  weightBytes: number;

  /** When it was last compared with the rows; null: never, and it may lack pictures of an older version. */
  @Column({ type: 'timestamptz', name: 'counted_at', nullable: true })
  countedAt: Date | null;
}
