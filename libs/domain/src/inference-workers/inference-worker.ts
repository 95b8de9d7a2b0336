import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A running inference process its devices and its models. It sends heartbeats; a silent process counts as gone. */
@Entity('inference_workers')
@Index('inference_workers_heartbeat_idx', ['heartbeatAt'])
export class InferenceWorker {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'inference_workers_pkey' })
  id: string;

  /** The devices actually used: `cpu`, `webgpu` or `cuda:<n>`. */
  @Column('text', { name: 'devices', array: true })
  devices: string[];

  /** The models it can draw now, those that its stand-in stands in for included; null: an older version, which does not say. */
  @Column('text', { name: 'models', array: true, nullable: true })
  models: string[] | null;

  @Column({ type: 'timestamptz', name: 'started_at', precision: 3 })
  startedAt: Date;

  @Column({ type: 'timestamptz', name: 'heartbeat_at', precision: 3 })
  heartbeatAt: Date;
}
