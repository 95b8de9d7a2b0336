import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { WebhookDelivery } from './webhook-delivery';

/** One attempt of a delivery, and its outcome. */
@Entity('webhook_attempts')
@Index('webhook_attempts_delivery_idx', ['deliveryId', 'startedAt'])
export class WebhookAttempt {
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24 }) deliveryId: string;

  @ManyToOne(() => WebhookDelivery, (delivery) => delivery.attempts, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'delivery_id', foreignKeyConstraintName: 'webhook_attempts_delivery_id_fkey' })
  delivery: Relation<WebhookDelivery>;

  @Column({ type: 'timestamptz', precision: 3 }) startedAt: Date;
  @Column('integer') durationMs: number;

  /** Null if there was no response. */
  @Column('integer', { nullable: true }) statusCode: number | null;
  @Column('text', { nullable: true }) error: string | null;
}
