import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * When a worker last said that it can draw this model. The row outlives the worker, so that its tasks
 * wait while it restarts.
 */
@Entity('drawable_models')
export class DrawableModel {
  @PrimaryColumn('varchar', { name: 'name', length: 64, primaryKeyConstraintName: 'drawable_models_pkey' })
  name: string;

  @Column({ type: 'timestamptz', name: 'drawable_at', precision: 3 })
  drawableAt: Date;
}
