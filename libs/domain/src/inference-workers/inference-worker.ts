import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** Models that one engine of a worker has loaded, and its work. */
export interface EngineReport {
  /** `cpu`, `webgpu` or `cuda:<n>`. */
  device: string;
  /** Tasks that it draws side by side. */
  tasks: number;
  /**
   * Pictures that its last call of the U-Net moved on, and the milliseconds of this call; 0 and null
   * while nothing is drawn.
   */
  pictures: number;
  stepMs: number | null;
  /**
   * The loaded models, `<model>@<hash>` with `+<kind>:<hash>` of a Fine-Tune's weights, and the
   * estimated bytes of each.
   */
  loaded: { name: string; bytes: number }[];
  /** Bytes that models and drawing may take. */
  memoryBytes: number;
}

/** An installed model that an engine has refused to draw with. */
export interface BrokenModel {
  name: string;
  /** Content hash of the files that were refused, sha256 in hexadecimal. */
  hash: string;
  /** Its fault, in one sentence. */
  problem: string;
}

/**
 * A running inference process: its devices, its models and what its engines are doing. It sends heartbeats; a silent
 * process counts as gone.
 */
@Entity('inference_workers')
@Index('inference_workers_heartbeat_idx', ['heartbeatAt'])
export class InferenceWorker {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  /** The devices actually used: `cpu`, `webgpu` or `cuda:<n>`. */
  @Column('text', { array: true }) devices: string[];

  /** The models it can draw now, those that its stand-in stands in for included. */
  @Column('text', { array: true }) models: string[];

  /** Its engines, one a device; null until they have reported. */
  @Column('json', { nullable: true }) engines: EngineReport[] | null;

  /** The models that its engines have refused; null until they have reported. */
  @Column('json', { nullable: true }) broken: BrokenModel[] | null;
  @Column({ type: 'timestamptz', precision: 3 }) startedAt: Date;
  @Column({ type: 'timestamptz', precision: 3 }) heartbeatAt: Date;
}

/**
 * When a worker last said that it can draw this model. The row outlives the worker, so that its tasks
 * wait while it restarts.
 */
@Entity('drawable_models')
export class DrawableModel {
  @PrimaryColumn('varchar', { length: 64 }) name: string;
  @Column({ type: 'timestamptz', precision: 3 }) drawableAt: Date;
}
