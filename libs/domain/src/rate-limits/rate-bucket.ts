import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The token bucket of a caller's requests. Its table is unlogged: after a database crash every bucket is full. */
@Entity('rate_buckets')
export class RateBucket {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'rate_buckets_pkey' })
  ownerId: string;

  /** Requests left; fractional while it refills. */
  @Column('double precision', { name: 'tokens' })
  tokens: number;

  /** Whether the last request for tokens got any. */
  @Column('boolean', { name: 'granted' })
  granted: boolean;

  /** How many tokens it got. */
  @Column('integer', { name: 'taken', default: 0 })
  taken: number;

  @Column({ type: 'timestamptz', name: 'updated_at' })
  updatedAt: Date;
}
