import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { WebhookDelivery } from './webhook-delivery';

/** One attempt of a delivery, and its outcome. */
@Entity('webhook_attempts')
@Index('webhook_attempts_delivery_idx', ['deliveryId', 'startedAt'])
export class WebhookAttempt {
  @PrimaryColumn('varchar', { name: 'id', length: 24, primaryKeyConstraintName: 'webhook_attempts_pkey' })
  id: string;

  @Column('varchar', { name: 'delivery_id', length: 24 })
  deliveryId: string;

  @ManyToOne(() => WebhookDelivery, (delivery) => delivery.attempts, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'delivery_id', foreignKeyConstraintName: 'webhook_attempts_delivery_id_fkey' })
  delivery: Relation<WebhookDelivery>;

  @Column({ type: 'timestamptz', name: 'started_at', precision: 3 })
  startedAt: Date;

  @Column('integer', { name: 'duration_ms' })
  durationMs: number;

  /** Null if there was no response. */
  @Column('integer', { name: 'status_code', nullable: true })
  statusCode: number | null;

  @Column('text', { name: 'error', nullable: true })
  error: string | null;
}
