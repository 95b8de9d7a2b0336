import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { bigintAsNumber } from '../common/column';

/** The token bucket of a caller's requests. Its table is unlogged: after a database crash every bucket is full. */
@Entity('rate_buckets')
export class RateBucket {
  @PrimaryColumn('varchar', { length: 24 }) ownerId: string;

  /** Requests left; fractional while it refills. */
  @Column('double precision') tokens: number;

  /** Whether the last request for tokens got any. */
  @Column('boolean') granted: boolean;
  @Column('integer', { default: 0 }) taken: number;
  @Column({ type: 'timestamptz' }) updatedAt: Date;
}

/**
 * The storage use of a caller, updated in the transactions that insert and delete the rows of its files: no request has
 * to count rows.
 */
@Entity('storage_use')
export class StorageUse {
  @PrimaryColumn('varchar', { length: 24 }) ownerId: string;
  @Column('bigint', { default: 0, transformer: bigintAsNumber }) pictureBytes: number;
  @Column('bigint', { default: 0, transformer: bigintAsNumber }) weightBytes: number;

  /** Kept for pictures of tasks that have not ended. */
  @Column('bigint', { default: 0, transformer: bigintAsNumber }) reservedBytes: number;

  /** Estimated: rows in the database, and thumbnails of Styles. */
  @Column('bigint', { default: 0, transformer: bigintAsNumber }) recordBytes: number;

  /** When it was last compared with the rows; null: never, and it may lack pictures of an older version. */
  @Column({ type: 'timestamptz', nullable: true }) countedAt: Date | null;
}

/**
 * An upload in progress, and the space reserved for it. The table is unlogged: a crash of the database ends every
 * upload.
 */
@Entity('uploads')
@Index('uploads_owner_idx', ['ownerId'])
export class Upload {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24 }) ownerId: string;
  @Column('bigint', { transformer: bigintAsNumber }) bytes: number;

  /** Time of the last heartbeat of the process that receives it. */
  @Column({ type: 'timestamptz', default: () => 'now()' }) renewedAt: Date;
}

/** Drawings of a caller on one UTC day, by model and Fine-Tune; written together with the terminated status. */
@Entity('daily_usage')
export class DailyUsage {
  @PrimaryColumn('varchar', { length: 24 }) ownerId: string;
  @PrimaryColumn('date') day: string;
  @PrimaryColumn('varchar', { length: 64 }) model: string;

  /** Empty for pictures without a Fine-Tune. */
  @PrimaryColumn('varchar', { length: 24 }) finetuneId: string;
  @Column('bigint', { transformer: bigintAsNumber }) images: number;
  @Column('bigint', { transformer: bigintAsNumber }) steps: number;
  @Column('bigint', { default: 0, transformer: bigintAsNumber }) pixels: number;
  @Column('double precision') computeSeconds: number;
}

/**
 * The part of a day's usage that has a user or several Fine-Tunes: `DailyUsage` counts it too, and older versions write
 * that alone.
 */
@Entity('detailed_usage')
export class DetailedUsage extends DailyUsage {
  /** Empty without one. */
  @PrimaryColumn('varchar', { length: 256 }) endUser: string;

  /** Ids of the Fine-Tunes of a Generation, in order, with commas. */
  @PrimaryColumn('varchar', { length: 128 }) finetunes: string;
}
