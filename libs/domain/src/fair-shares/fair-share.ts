import { Column, Entity, PrimaryColumn } from 'typeorm';

/** How much engine time a caller has used, so that the caller with the least is served next. */
@Entity('fair_shares')
export class FairShare {
  @PrimaryColumn('varchar', { length: 24 }) ownerId: string;

  /** Compute seconds charged so far. After idle time it is raised to the level of those who wait. */
  @Column('double precision', { default: 0 }) virtualTime: number;
}
