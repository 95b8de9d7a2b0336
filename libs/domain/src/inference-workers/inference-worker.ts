import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** Models that one engine of a worker has loaded, and its work. */
export interface EngineReport {
  /** `cpu`, `webgpu` or `cuda:<n>`. */
  device: string;
  /** Tasks that it draws side by side. */
  tasks: number;
  /** Pictures in the denoiser's last call, and its milliseconds; 0 and null while nothing is drawn. */
  pictures: number;
  stepMs: number | null;
  /** `<model>@<hash>`, with `+<kind>:<hash>` of a Fine-Tune's weights; the bytes are estimated. */
  loaded: { name: string; bytes: number }[];
  /** What models and drawing may take. */
  memoryBytes: number;
}

/** An installed model that an engine has refused to draw with. */
export interface BrokenModel {
  /** As `modelKey`. */
  key: string;
  /** In one sentence. */
  problem: string;
}

/** That a worker signs the pictures that it draws, and why it cannot at the moment, in a sentence. */
export interface SigningReport {
  problem: string | null;
}

/**
 * Whether pictures get Content Credentials; `partly`: of some workers they do; `failing`: they should, and cannot at the
 * moment.
 */
export const signingStates = ['on', 'partly', 'off', 'failing'] as const;
export type SigningState = (typeof signingStates)[number];

/**
 * A running inference process: its devices, its models and the work of its engines. One without heartbeats counts as
 * gone.
 */
@Entity('inference_workers')
@Index('inference_workers_heartbeat_idx', ['heartbeatAt'])
export class InferenceWorker {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  /** The devices actually used: `cpu`, `webgpu` or `cuda:<n>`. */
  @Column('text', { array: true }) devices: string[];

  /** Those that it can draw now, including those that its stand-in draws. */
  @Column('text', { array: true }) models: string[];

  /** One a device; null until they have reported. */
  @Column('json', { nullable: true }) engines: EngineReport[] | null;

  /** Those that its engines have refused; null until they have reported. */
  @Column('json', { nullable: true }) broken: BrokenModel[] | null;

  /** Null where its pictures get no Content Credentials. */
  @Column('json', { nullable: true }) credentials: SigningReport | null;
  @Column({ type: 'timestamptz', precision: 3 }) startedAt: Date;
  @Column({ type: 'timestamptz', precision: 3 }) heartbeatAt: Date;
}

/**
 * When a worker last said that it can draw this model. The row outlives the worker: its tasks wait while it restarts.
 */
@Entity('drawable_models')
export class DrawableModel {
  @PrimaryColumn('varchar', { length: 64 }) name: string;
  @Column({ type: 'timestamptz', precision: 3 }) drawableAt: Date;
}
