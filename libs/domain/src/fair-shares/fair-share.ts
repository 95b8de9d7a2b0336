import { Column, Entity, PrimaryColumn } from 'typeorm';

/** How much of the engines' time a caller has had, so that the one who has had the least is served next. */
@Entity('fair_shares')
export class FairShare {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'fair_shares_pkey' })
  ownerId: string;

  /** Compute seconds charged so far; who comes back after a rest is put level with those who wait. */
  @Column('double precision', { name: 'virtual_time', default: 0 })
  virtualTime: number;
}
