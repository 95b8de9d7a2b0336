import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { bigintAsNumber, type Metadata } from '../common/column';

export const finetuneStatuses = ['registered', 'queued', 'training', 'ready', 'failed', 'canceled'] as const;
export type FinetuneStatus = (typeof finetuneStatuses)[number];
export const finetuneWeightsKinds = ['lora', 'textual_inversion'] as const;
export type FinetuneWeightsKind = (typeof finetuneWeightsKinds)[number];

/** A trained object of a caller: its class noun, its token, and the weights once they are uploaded or trained. */
@Entity('finetunes')
@Index('finetunes_owner_seq_idx', ['ownerId', 'seq'])
@Index('finetunes_account_seq_idx', ['accountId', 'seq'])
export class Finetune {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24 }) ownerId: string;

  /** That of its key; a trigger fills it in. All keys of an account share its records. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string;
  @Column('bigint', { generated: 'increment', transformer: bigintAsNumber }) seq: number;

  /** The class noun that a Prompt's text must include, such as `robot`. */
  @Column('varchar', { length: 200 }) name: string;
  @Column('varchar', { length: 200, nullable: true }) title: string | null;

  /** Inserted before the name where a text lacks it. */
  @Column('varchar', { length: 64 }) token: string;
  @Column('varchar', { length: 64 }) model: string;

  /** Whether it has weights; the state of its training is in its task. */
  @Column('varchar', { length: 16 }) status: 'registered' | 'ready';
  @Column('json', { nullable: true }) metadata: Metadata | null;
  /**
   * Always null: the error is that of its training's task. The previous version's processes still select the column.
   */
  @Column('text', { nullable: true }) errorMessage: string | null;
  @Column('varchar', { length: 24, nullable: true }) weightsKind: FinetuneWeightsKind | null;

  /** SHA-256 of the file of weights, in hex. */
  @Column('varchar', { length: 64, nullable: true }) weightsHash: string | null;

  /** Key in the storage. */
  @Column('varchar', { length: 256, nullable: true }) weightsKey: string | null;

  /** Number of embeddings behind a textual inversion's token; each takes the place of one token. */
  @Column('integer', { nullable: true }) weightsVectors: number | null;
  @Column('bigint', { nullable: true, transformer: bigintAsNumber }) weightsBytes: number | null;
  @Column('double precision', { default: 1 }) weightsScale: number;

  /**
   * `<model>@<hash>` of the base model that the weights were checked against; null for weights older than this column.
   */
  @Column('varchar', { length: 128, nullable: true }) weightsBase: string | null;
  @Column('text', { nullable: true }) weightsNote: string | null;

  /** Tensors of the file that met no layer of the model; null for weights older than this column. */
  @Column('integer', { nullable: true }) weightsUnmatched: number | null;
  @Column({ type: 'timestamptz', precision: 3 }) createdAt: Date;

  /**
   * Whether its base model was replaced or removed since its weights were checked.
   * @param base `<model>@<hash>` that draws now, if there is one.
   */
  isStale(base: string | undefined): boolean {
    return this.weightsBase !== null && this.weightsBase !== base;
  }
}
