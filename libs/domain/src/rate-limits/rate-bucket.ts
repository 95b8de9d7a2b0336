import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The token bucket of a caller's requests. Its table is not logged: a crash of the database fills every bucket. */
@Entity('rate_buckets')
export class RateBucket {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'rate_buckets_pkey' })
  ownerId: string;

  /** Requests that may still be made, a fraction while it fills. */
  @Column('double precision', { name: 'tokens' })
  tokens: number;

  /** Whether the last taking got any. */
  @Column('boolean', { name: 'granted' })
  granted: boolean;

  /** How many tokens it got. */
  @Column('integer', { name: 'taken', default: 0 })
  taken: number;

  @Column({ type: 'timestamptz', name: 'updated_at' })
  updatedAt: Date;
}
