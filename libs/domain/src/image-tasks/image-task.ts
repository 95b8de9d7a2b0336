import { Check, Column, Entity, Index, OneToMany, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import type { AspectRatio } from '../common/sizes';
import { bigintAsNumber } from '../common/column';
import { Image } from './image';
import type { ImageTaskStatus } from './image-task-status';

export type ImageTaskKind = 'generation' | 'prompt';
export const outputFormats = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/**
 * One unit of drawing: all parameters of the pictures, and the progress. A Generation or a Fine-Tune's Prompt owns one,
 * with the same id. Only the conditional updates of the task's life cycle change the status.
 */
@Entity('image_tasks')
@Check('image_tasks_status_check', `"status" IN ('queued', 'processing', 'succeeded', 'failed', 'canceled')`)
@Check('image_tasks_kind_check', `"kind" IN ('generation', 'prompt')`)
@Index('image_tasks_sandbox_idx', ['createdAt'], { where: `"status" IN ('queued', 'processing') AND "sandbox"` })
@Index('image_tasks_owner_idx', ['ownerId', 'status'])
@Index('image_tasks_created_idx', ['ownerId', 'createdAt'])
@Index('image_tasks_completed_idx', ['ownerId', 'completedAt'], { where: `"completed_at" IS NOT NULL` })
@Index('image_tasks_queued_model_idx', ['ownerId', 'model', 'createdAt', 'id'], {
  where: `"status" = 'queued' AND NOT "sandbox"`,
})
@Index('image_tasks_failed_idx', ['completedAt', 'id'], { where: `"status" = 'failed' AND NOT "sandbox"` })
@Index('image_tasks_place_idx', ['ownerId', 'place'], { unique: true, where: `"status" = 'processing'` })
export class ImageTask {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'image_tasks_pkey' })
  id: string;

  @Column('varchar', { name: 'kind', length: 16 })
  kind: ImageTaskKind;

  @Column('varchar', { name: 'owner_id', length: 24 })
  ownerId: string;

  @Column('varchar', { name: 'finetune_id', length: 24, nullable: true })
  finetuneId: string | null;

  /** The text that is drawn, including a Fine-Tune's token. */
  @Column('text', { name: 'prompt' })
  prompt: string;

  @Column('text', { name: 'negative_prompt', nullable: true })
  negativePrompt: string | null;

  @Column('double precision', { name: 'cfg' })
  cfg: number;

  @Column('integer', { name: 'steps' })
  steps: number;

  /** Seed of the first image; image i has `seed + i`, modulo 2^32. */
  @Column('bigint', { name: 'seed', transformer: bigintAsNumber })
  seed: number;

  /** Null: the model's own scheduler. */
  @Column('varchar', { name: 'scheduler', length: 32, nullable: true })
  scheduler: string | null;

  /** The requested model; `servedBy` says which weights drew. */
  @Column('varchar', { name: 'model', length: 64 })
  model: string;

  @Column('varchar', { name: 'aspect_ratio', length: 16 })
  aspectRatio: AspectRatio;

  @Column('boolean', { name: 'high_resolution' })
  highResolution: boolean;

  @Column('varchar', { name: 'output_format', length: 8, default: 'png' })
  outputFormat: OutputFormat;

  @Column('boolean', { name: 'prompt_weighting', default: false })
  promptWeighting: boolean;

  /**
   * Of the Fine-Tune's weights when the task was accepted; null without weights, and for tasks
   * from before it was stored.
   */
  @Column('varchar', { name: 'weights_hash', length: 64, nullable: true })
  weightsHash: string | null;

  /** The scale that these weights had then. */
  @Column('double precision', { name: 'weights_scale', nullable: true })
  weightsScale: number | null;

  @Column('integer', { name: 'num_images' })
  numImages: number;

  @Column('varchar', { name: 'status', length: 16 })
  status: ImageTaskStatus;

  /** Number of claims; a write with an older attempt than the row's is rejected. */
  @Column('integer', { name: 'attempt', default: 0 })
  attempt: number;

  /** Tries that ended in an error of the task's own. */
  @Column('integer', { name: 'failures', default: 0 })
  failures: number;

  /**
   * Number of claims that ended with the death or the silence of the worker. The first may be the fault of any task
   * that was there; from then on the task is drawn alone, and only what happens then counts.
   */
  @Column('integer', { name: 'deaths', default: 0 })
  deaths: number;

  /** Whether this attempt is drawn while its worker draws nothing else, so that a death is its fault. */
  @Column('boolean', { name: 'drawn_alone', default: false })
  drawnAlone: boolean;

  /** Whether it belongs to a sandbox key, so that no engine draws it. */
  @Column('boolean', { name: 'sandbox', default: false })
  sandbox: boolean;

  /** Not to be claimed before this time: the wait after a failed attempt. */
  @Column({ type: 'timestamptz', name: 'not_before', precision: 3, nullable: true })
  notBefore: Date | null;

  /** Which of its key's places it has while it is drawn, from 1; null if the key has no limit. */
  @Column('integer', { name: 'place', nullable: true })
  place: number | null;

  /** Estimated compute seconds that its owner was charged at the claim. */
  @Column('double precision', { name: 'charged_seconds', default: 0 })
  chargedSeconds: number;

  /** Time of the last heartbeat of its worker. */
  @Column({ type: 'timestamptz', name: 'heartbeat_at', nullable: true })
  heartbeatAt: Date | null;

  /** `<model>@<hash>` of the weights that draw it, once drawing has started. */
  @Column('varchar', { name: 'served_by', length: 128, nullable: true })
  servedBy: string | null;

  /** What enlarged a high-resolution picture. */
  @Column('varchar', { name: 'upscaler', length: 128, nullable: true })
  upscaler: string | null;

  /** Number of 75-token chunks of the prompt: counted by the api first, then as actually drawn. */
  @Column('integer', { name: 'prompt_chunks', nullable: true })
  promptChunks: number | null;

  @Column('text', { name: 'error', nullable: true })
  error: string | null;

  @Column('double precision', { name: 'compute_seconds', nullable: true })
  computeSeconds: number | null;

  /** Storage used by its pictures. */
  @Column('bigint', { name: 'picture_bytes', default: 0, transformer: bigintAsNumber })
  pictureBytes: number;

  @Column({ type: 'timestamptz', name: 'created_at', precision: 3 })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'started_at', precision: 3, nullable: true })
  startedAt: Date | null;

  @Column({ type: 'timestamptz', name: 'completed_at', precision: 3, nullable: true })
  completedAt: Date | null;

  @OneToMany(() => Image, (image) => image.task)
  images: Relation<Image>[];
}
