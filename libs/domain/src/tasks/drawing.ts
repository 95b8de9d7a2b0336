import { Column, Entity, JoinColumn, OneToOne, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import type { AspectRatio } from '../common/sizes';
import type { DrawingInputs } from './drawing-inputs';
import { Task } from './task';

export const outputFormats = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/** All parameters of the pictures of a Generation or a Fine-Tune's Prompt; its task has the same id. */
@Entity('drawings')
export class Drawing {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  @OneToOne(() => Task, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'drawings_id_fkey' })
  task: Relation<Task>;

  @Column('varchar', { length: 24, nullable: true }) finetuneId: string | null;

  /** The text that is drawn, including a Fine-Tune's token. */
  @Column('text') prompt: string;
  @Column('text', { nullable: true }) negativePrompt: string | null;
  @Column('double precision') cfg: number;
  @Column('integer') steps: number;

  /** Seed of the first image; image i has `seed + i`, modulo 2^32. */
  @Column('bigint', { transformer: bigintAsNumber }) seed: number;

  /** Null: the model's own scheduler. */
  @Column('varchar', { length: 32, nullable: true }) scheduler: string | null;
  /** As it was sent; null where the size was, or where a picture's shape decides. */
  @Column('varchar', { length: 16, nullable: true }) aspectRatio: AspectRatio | null;

  /** In pixels, before it is enlarged. */
  @Column('integer', { default: 512 }) width: number;
  @Column('integer', { default: 512 }) height: number;
  @Column('boolean') highResolution: boolean;
  @Column('varchar', { length: 8, default: 'png' }) outputFormat: OutputFormat;
  @Column('boolean', { default: false }) promptWeighting: boolean;
  @Column('integer') numImages: number;

  /** Null if it is drawn from its texts alone. */
  @Column('json', { nullable: true }) inputs: DrawingInputs | null;

  /** Of the Fine-Tune's weights when the task was accepted; null without weights. */
  @Column('varchar', { length: 64, nullable: true }) weightsHash: string | null;

  /** The scale that these weights had then. */
  @Column('double precision', { nullable: true }) weightsScale: number | null;

  /** `<model>@<hash>` of the weights that draw it, once drawing has started. */
  @Column('varchar', { length: 256, nullable: true }) servedBy: string | null;
  @Column('varchar', { length: 128, nullable: true }) upscaler: string | null;

  /** How many of its pictures are not there, because they were flagged. */
  @Column('integer', { default: 0 }) filtered: number;

  /** Indexes of those that were flagged and are there all the same. */
  @Column('integer', { array: true, default: () => `'{}'` }) flagged: number[];

  /** What flagged pictures, stored or not: `safety checker`, `moderation: violence`. */
  @Column('text', { array: true, default: () => `'{}'` }) flaggedBy: string[];

  /** Chunks of tokens in which the model reads the prompt: counted by the api first, then as actually drawn. */
  @Column('integer', { nullable: true }) promptChunks: number | null;
}

/** A task with what it draws, as a worker has both. */
export type DrawingTask = Task & Omit<Drawing, 'task'>;
