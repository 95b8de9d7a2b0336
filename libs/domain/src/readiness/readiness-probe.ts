import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The one row that readiness checks write, to test whether the database is writable. */
@Entity('readiness_probes')
export class ReadinessProbe {
  @PrimaryColumn('integer', { name: 'id', primaryKeyConstraintName: 'readiness_probes_pkey' })
  id: number;

  @Column({ type: 'timestamptz', name: 'probed_at', precision: 3 })
  probedAt: Date;
}
