import { Column, Entity, Index, JoinColumn, ManyToOne, OneToOne, PrimaryColumn, type Relation } from 'typeorm';
import { bigintAsNumber, type Metadata } from '../common/column';
import { Finetune } from '../finetunes/finetune';
import { Drawing } from '../tasks/drawing';

/** A Prompt of a Fine-Tune. The drawing with the same id says what is drawn. */
@Entity('finetune_prompts')
@Index('finetune_prompts_finetune_seq_idx', ['finetuneId', 'seq'])
export class FinetunePrompt {
  @PrimaryColumn('varchar', { length: 24 }) id: string;

  @OneToOne(() => Drawing, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'id', foreignKeyConstraintName: 'finetune_prompts_id_fkey' })
  drawing: Relation<Drawing>;

  @Column('varchar', { length: 24 }) ownerId: string;

  /** That of its key; a trigger fills it in. All keys of an account share its records. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string;
  @Column('varchar', { length: 24 }) finetuneId: string;

  @ManyToOne(() => Finetune, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'finetune_id', foreignKeyConstraintName: 'finetune_prompts_finetune_id_fkey' })
  finetune: Relation<Finetune>;

  @Column('bigint', { generated: 'increment', transformer: bigintAsNumber }) seq: number;

  /** The text as it was sent; the drawing has the text that is drawn. */
  @Column('text') prompt: string;

  /** Not in any response. */
  @Column('varchar', { length: 2048, nullable: true }) webhook: string | null;
  @Column('json', { nullable: true }) metadata: Metadata | null;

  /** Storage key of the thumbnail of its first picture; null until that is drawn. */
  @Column('varchar', { length: 256, nullable: true }) thumbnailKey: string | null;
}
