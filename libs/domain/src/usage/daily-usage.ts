import { Column, Entity, PrimaryColumn } from 'typeorm';
import { bigintAsNumber } from '../common/column';

/** What a caller drew on one UTC day, by model and Fine-Tune; written together with the terminated status. */
@Entity('daily_usage')
export class DailyUsage {
  @PrimaryColumn('varchar', { name: 'owner_id', length: 24, primaryKeyConstraintName: 'daily_usage_pkey' })
  ownerId: string;

  @PrimaryColumn('date', { name: 'day', primaryKeyConstraintName: 'daily_usage_pkey' })
  day: string;

  @PrimaryColumn('varchar', { name: 'model', length: 64, primaryKeyConstraintName: 'daily_usage_pkey' })
  model: string;

  /** Empty for pictures without a Fine-Tune. */
  @PrimaryColumn('varchar', { name: 'finetune_id', length: 24, primaryKeyConstraintName: 'daily_usage_pkey' })
  finetuneId: string;

  @Column('bigint', { name: 'images', transformer: bigintAsNumber })
  images: number;

  @Column('bigint', { name: 'steps', transformer: bigintAsNumber })
  steps: number;

  @Column('double precision', { name: 'compute_seconds' })
  computeSeconds: number;
}
