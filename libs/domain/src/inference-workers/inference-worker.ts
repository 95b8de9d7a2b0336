import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A running inference process and the devices it draws on. It sends heartbeats; a silent process counts as gone. */
@Entity('inference_workers')
@Index('inference_workers_heartbeat_idx', ['heartbeatAt'])
export class InferenceWorker {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'inference_workers_pkey' })
  id: string;

  /** The devices actually used: `cpu`, `webgpu` or `cuda:<n>`. */
  @Column('text', { name: 'devices', array: true })
  devices: string[];

  @Column({ type: 'timestamptz', name: 'started_at', precision: 3 })
  startedAt: Date;

  @Column({ type: 'timestamptz', name: 'heartbeat_at', precision: 3 })
  heartbeatAt: Date;
}
