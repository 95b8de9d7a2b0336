import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation, Unique } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import { Collection } from '../collections/collection';

/** A reusable text with its controls, made from a Prompt, that can be applied to any Fine-Tune. */
@Entity('styles')
@Index('styles_collection_seq_idx', ['collectionId', 'seq'])
@Index('styles_source_idx', ['sourcePromptId', 'seq'], { where: `"source_prompt_id" IS NOT NULL` })
@Unique('styles_thumbnail_token_key', ['thumbnailToken'])
export class Style {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24, nullable: true }) ownerId: string | null;

  /** That of its key; a trigger fills it in. All keys of an account share its records. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string | null;
  @Column('varchar', { length: 24 }) collectionId: string;

  @ManyToOne(() => Collection, (collection) => collection.styles, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'collection_id', foreignKeyConstraintName: 'styles_collection_id_fkey' })
  collection: Relation<Collection>;

  /** Order inside the Collection. */
  @Column('bigint', { generated: 'increment', transformer: bigintAsNumber }) seq: number;
  @Column('varchar', { length: 200 }) name: string;

  /** The Prompt's text with `stylePlaceholder` in place of token and name. */
  @Column('text') template: string;
  @Column('text', { nullable: true }) negativePrompt: string | null;

  /** Null, as in every public Style: the default of the model that draws. */
  @Column('double precision', { nullable: true }) cfg: number | null;

  /** As `cfg`. */
  @Column('integer', { nullable: true }) steps: number | null;

  /**
   * The Prompt it was made from, whose thumbnail it shows. Not a foreign key: the Style outlives the Prompt. Null in a
   * public Collection.
   */
  @Column('varchar', { length: 24, nullable: true }) sourcePromptId: string | null;

  /** Those of that Prompt and of its Fine-Tune, also when these are deleted; a trigger fills it in. */
  @Column('varchar', { length: 256, array: true, default: () => `'{}'` }) endUsers: string[];

  /** Secret part of the thumbnail's URL `<PUBLIC_URL>/images/<token>.png`. */
  @Column('varchar', { length: 24, nullable: true }) thumbnailToken: string | null;

  /** Null until there is a picture. The Prompt and all its Styles share the file: it goes with the last of them. */
  @Column('varchar', { length: 256, nullable: true }) thumbnailKey: string | null;

  /** Bytes of its owner's storage: its row, estimated, and its thumbnail. */
  @Column('integer', { default: 0 }) recordBytes: number;
  @Column({ type: 'timestamptz', precision: 3 }) createdAt: Date;
}
