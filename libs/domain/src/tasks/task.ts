import { Check, Column, Entity, Index, OneToMany, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import { Image } from './image';
import type { TaskStatus } from './task-status';

export const taskKinds = ['generation', 'prompt', 'training'] as const;
export type TaskKind = (typeof taskKinds)[number];

/**
 * Where a queued task waits: for a worker that draws, for one that trains, for an api process that fetches weights, or
 * for its Fine-Tune to have weights.
 */
export const taskQueues = ['drawing', 'training', 'weights', 'waiting'] as const;
export type TaskQueue = (typeof taskQueues)[number];

/**
 * One piece of a worker's work, and its progress; a row with the same id says what to draw or train. Only the
 * conditional updates of `libs/tasks` change the status.
 */
@Entity('tasks')
@Check('tasks_status_check', `"status" IN ('queued', 'processing', 'succeeded', 'failed', 'canceled')`)
@Index('tasks_sandbox_idx', ['createdAt'], { where: `"status" IN ('queued', 'processing') AND "sandbox"` })
@Index('tasks_owner_idx', ['ownerId', 'status'])
@Index('tasks_created_idx', ['ownerId', 'createdAt'])
@Index('tasks_account_idx', ['accountId', 'createdAt', 'id'])
@Index('tasks_end_user_idx', ['accountId', 'endUser', 'createdAt'], { where: `"end_user" IS NOT NULL` })
@Index('tasks_completed_idx', ['ownerId', 'completedAt'], { where: `"completed_at" IS NOT NULL` })
@Index('tasks_queued_model_idx', ['queue', 'ownerId', 'model', 'createdAt', 'id'], {
  where: `"status" = 'queued' AND NOT "sandbox"`,
})
@Index('tasks_failed_idx', ['completedAt', 'id'], { where: `"status" = 'failed' AND NOT "sandbox"` })
@Index('tasks_place_idx', ['ownerId', 'place'], { unique: true, where: `"status" = 'processing'` })
export class Task {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 16 }) kind: TaskKind;
  @Column('varchar', { length: 16, default: 'drawing' }) queue: TaskQueue;
  @Column('varchar', { length: 24 }) ownerId: string;

  /** That of its key; a trigger fills it in. All keys of an account share its records. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string;

  /** Whose the pictures are, in the caller's words. */
  @Column('varchar', { length: 256, nullable: true }) endUser: string | null;

  /** A worker that has it loaded claims the task sooner. */
  @Column('varchar', { length: 64 }) model: string;

  /** Estimated compute seconds, which its owner is charged at the claim. */
  @Column('double precision') cost: number;

  /** A sandbox key's: no engine works on it. */
  @Column('boolean', { default: false }) sandbox: boolean;
  @Column('varchar', { length: 16 }) status: TaskStatus;

  /** Number of claims; a write with an older attempt than the row's is rejected. */
  @Column('integer', { default: 0 }) attempt: number;

  /** Tries that ended in an error of the task's own. */
  @Column('integer', { default: 0 }) failures: number;

  /**
   * Claims that ended with the death or the silence of the worker. The first may be the fault of any task beside it;
   * from then on the task is drawn alone, and only what happens then counts.
   */
  @Column('integer', { default: 0 }) deaths: number;

  /** Whether its worker draws nothing else in this attempt, so that a death is its fault. */
  @Column('boolean', { default: false }) drawnAlone: boolean;

  /** Not to be claimed before this time: the wait after a failed attempt. */
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) notBefore: Date | null;

  /**
   * Its number among its key's tasks in progress: from 1 for drawings, 0 for weights that are fetched, from -1 down for
   * trainings; null if the key has no limit.
   */
  @Column('integer', { nullable: true }) place: number | null;

  /** The charge to its owner at the last claim. */
  @Column('double precision', { default: 0 }) chargedSeconds: number;
  @Column({ type: 'timestamptz', nullable: true }) heartbeatAt: Date | null;
  @Column('text', { nullable: true }) error: string | null;
  @Column('double precision', { nullable: true }) computeSeconds: number | null;
  @Column('bigint', { default: 0, transformer: bigintAsNumber }) pictureBytes: number;

  /** Bytes kept for its pictures until it ends. */
  @Column('bigint', { default: 0, transformer: bigintAsNumber }) reservedBytes: number;

  /** Estimated bytes in the database, with its drawing and its record. */
  @Column('integer', { default: 0 }) recordBytes: number;
  @Column({ type: 'timestamptz', precision: 3 }) createdAt: Date;
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) startedAt: Date | null;

  /** When its last attempt began; `startedAt` is of the first. */
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) claimedAt: Date | null;
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) completedAt: Date | null;

  @OneToMany(() => Image, (image) => image.task)
  images: Relation<Image>[];
}

/** A task as the worker that claimed it holds it: another claim makes it out of date. */
export type Attempt = Pick<Task, 'id' | 'attempt'>;
