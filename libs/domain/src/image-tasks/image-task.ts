import { Check, Column, Entity, Index, OneToMany, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import type { AspectRatio } from '../common/aspect-ratio';
import { bigintAsNumber } from '../common/column';
import { Image } from './image';
import type { ImageTaskStatus } from './image-task-status';

export type ImageTaskKind = 'generation' | 'prompt';
export const outputFormats = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/**
 * One unit of drawing: everything that decides the picture, and how far it has come.
 * A Generation and a Fine-Tune's Prompt each own one, under their own id.
 * The status moves only by the conditional updates of the job life cycle.
 */
@Entity('image_tasks')
@Check('image_tasks_status_check', `"status" IN ('queued', 'processing', 'succeeded', 'failed', 'canceled')`)
@Check('image_tasks_kind_check', `"kind" IN ('generation', 'prompt')`)
@Index('image_tasks_sandbox_idx', ['createdAt'], { where: `"status" IN ('queued', 'processing') AND "sandbox"` })
@Index('image_tasks_owner_idx', ['ownerId', 'status'])
@Index('image_tasks_completed_idx', ['ownerId', 'completedAt'], { where: `"completed_at" IS NOT NULL` })
@Index('image_tasks_queued_idx', ['ownerId', 'createdAt', 'id'], { where: `"status" = 'queued' AND NOT "sandbox"` })
@Index('image_tasks_ticket_idx', ['ticket'], { where: `"status" = 'processing'` })
@Index('image_tasks_slot_idx', ['ownerId', 'slot'], { unique: true, where: `"status" = 'processing'` })
export class ImageTask {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'image_tasks_pkey' })
  id: string;

  @Column('varchar', { name: 'kind', length: 16 })
  kind: ImageTaskKind;

  @Column('varchar', { name: 'owner_id', length: 24 })
  ownerId: string;

  @Column('varchar', { name: 'finetune_id', length: 24, nullable: true })
  finetuneId: string | null;

  /** The text that is drawn, with a Fine-Tune's token written in. */
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

  /** Null: the model's own. */
  @Column('varchar', { name: 'scheduler', length: 32, nullable: true })
  scheduler: string | null;

  /** The model's name as asked for; `servedBy` says which weights drew. */
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

  @Column('integer', { name: 'num_images' })
  numImages: number;

  @Column('varchar', { name: 'status', length: 16 })
  status: ImageTaskStatus;

  /** Counts the claims; a write that carries an older attempt than the row is refused. */
  @Column('integer', { name: 'attempt', default: 0 })
  attempt: number;

  /** Counts the claims that ended without a word, as when the worker died. */
  @Column('integer', { name: 'deaths', default: 0 })
  deaths: number;

  /** Counts the jobs made for this task; the job id is `<id>-<enqueued>`. */
  @Column('integer', { name: 'enqueued', default: 1 })
  enqueued: number;

  /** Of a sandbox key: it is drawn by no engine. */
  @Column('boolean', { name: 'sandbox', default: false })
  sandbox: boolean;

  /** Not to be claimed before this: the wait after a failed try. */
  @Column({ type: 'timestamptz', name: 'not_before', precision: 3, nullable: true })
  notBefore: Date | null;

  /** Id of the job that claimed it; the job of a worker that died finds its task again by this. */
  @Column('varchar', { name: 'ticket', length: 40, nullable: true })
  ticket: string | null;

  /** Which of the places of its key it takes while it is drawn, from 1; null where the key has no cap. */
  @Column('integer', { name: 'slot', nullable: true })
  slot: number | null;

  /** Estimated compute seconds that its owner was charged at the claim. */
  @Column('double precision', { name: 'charged_seconds', default: 0 })
  chargedSeconds: number;

  /** When the worker that holds the task last said so. */
  @Column({ type: 'timestamptz', name: 'heartbeat_at', nullable: true })
  heartbeatAt: Date | null;

  /** `<model>@<hash>` of the weights that draw it, once drawing has started. */
  @Column('varchar', { name: 'served_by', length: 128, nullable: true })
  servedBy: string | null;

  /** What enlarged a high-resolution picture. */
  @Column('varchar', { name: 'upscaler', length: 128, nullable: true })
  upscaler: string | null;

  /** In how many chunks of 75 tokens the prompt is encoded: as the api counts them, and as they were once it is drawn. */
  @Column('integer', { name: 'prompt_chunks', nullable: true })
  promptChunks: number | null;

  @Column('text', { name: 'error', nullable: true })
  error: string | null;

  @Column('double precision', { name: 'compute_seconds', nullable: true })
  computeSeconds: number | null;

  /** What its pictures take in the storage. */
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
