import { Column, Entity, JoinColumn, OneToOne, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import { Task } from '../tasks/task';

/**
 * How a Fine-Tune comes by its weights: it is trained, or they are fetched. Its task and its Fine-Tune have the same id.
 */
@Entity('trainings')
export class Training {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  @OneToOne(() => Task, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'trainings_id_fkey' })
  task: Relation<Task>;

  @Column('text', { array: true }) imagesUrl: string[];

  /** Where its weights are fetched from; null if it is trained. */
  @Column('varchar', { length: 2048, nullable: true }) weightsUrl: string | null;

  /** The SHA-256 that they must have, in hex. */
  @Column('varchar', { length: 64, nullable: true }) weightsSha256: string | null;

  /** Subject of each picture; null: the Fine-Tune's token and name. */
  @Column('text', { array: true, nullable: true }) captions: string[] | null;
  @Column('integer') steps: number;

  /** Every random number of the training follows from it. */
  @Column('bigint', { transformer: bigintAsNumber }) seed: number;
  @Column('varchar', { length: 2048, nullable: true }) webhook: string | null;
  @Column('varchar', { length: 24, array: true, default: () => `'{}'` }) promptIds: string[];

  /** Steps done, as its worker last wrote. */
  @Column('integer', { default: 0 }) step: number;

  /** Compute seconds of all its attempts, as its worker last wrote. */
  @Column('double precision', { default: 0 }) computeSeconds: number;

  /** Differences from the request, for people. */
  @Column('text', { nullable: true }) note: string | null;
}

/** A task with what it trains, as a worker has both. */
export type TrainingTask = Task &
  Pick<Training, 'imagesUrl' | 'captions' | 'steps' | 'seed' | 'step'> & {
    /** Compute seconds of earlier attempts. */
    trainedSeconds: number;
  };
