import { Column, Entity, JoinColumn, OneToOne, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import type { AspectRatio } from '../common/sizes';
import type { DrawingInputs } from './drawing-inputs';
import { Task } from './task';

export const outputFormats = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/** The drawing of the task with the same id, for a Generation or a Fine-Tune's Prompt: all parameters of its pictures. */
@Entity('drawings')
export class Drawing {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'drawings_pkey' })
  id: string;

  @OneToOne(() => Task, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'drawings_id_fkey' })
  task: Relation<Task>;

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

  @Column('varchar', { name: 'aspect_ratio', length: 16 })
  aspectRatio: AspectRatio;

  /** Size in pixels at which it is drawn. */
  @Column('integer', { name: 'width', default: 512 })
  width: number;

  @Column('integer', { name: 'height', default: 512 })
  height: number;

  @Column('boolean', { name: 'high_resolution' })
  highResolution: boolean;

  @Column('varchar', { name: 'output_format', length: 8, default: 'png' })
  outputFormat: OutputFormat;

  @Column('boolean', { name: 'prompt_weighting', default: false })
  promptWeighting: boolean;

  @Column('integer', { name: 'num_images' })
  numImages: number;

  /** Sources of it besides its texts; null: these alone. */
  @Column('json', { name: 'inputs', nullable: true })
  inputs: DrawingInputs | null;

  /** Of the Fine-Tune's weights when the task was accepted; null without weights. */
  @Column('varchar', { name: 'weights_hash', length: 64, nullable: true })
  weightsHash: string | null;

  /** The scale that these weights had then. */
  @Column('double precision', { name: 'weights_scale', nullable: true })
  weightsScale: number | null;

  /** `<model>@<hash>` of the weights that draw it, once drawing has started. */
  @Column('varchar', { name: 'served_by', length: 256, nullable: true })
  servedBy: string | null;

  /** The upscaler of a high-resolution picture. */
  @Column('varchar', { name: 'upscaler', length: 128, nullable: true })
  upscaler: string | null;

  /** Number of 75-token chunks of the prompt: counted by the api first, then as actually drawn. */
  @Column('integer', { name: 'prompt_chunks', nullable: true })
  promptChunks: number | null;
}

/** A task with what it draws, as a worker has both. */
export type DrawingTask = Task & Omit<Drawing, 'task'>;
