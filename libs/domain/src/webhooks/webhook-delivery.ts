import { Check, Column, Entity, Index, JoinColumn, ManyToOne, OneToMany, PrimaryColumn, type Relation } from 'typeorm';
import { Task } from '../tasks/task';
import { WebhookAttempt } from './webhook-attempt';

export const webhookDeliveryStatuses = ['pending', 'delivered', 'failed'] as const;
export type WebhookDeliveryStatus = (typeof webhookDeliveryStatuses)[number];

/** The delivery of a terminated record to its webhook; inserted in the transaction that terminates it. */
@Entity('webhook_deliveries')
@Check('webhook_deliveries_status_check', `"status" IN ('pending', 'delivered', 'failed')`)
@Index('webhook_deliveries_task_idx', ['taskId', 'createdAt'])
@Index('webhook_deliveries_status_idx', ['status', 'createdAt', 'id'])
@Index('webhook_deliveries_due_idx', ['ownerId', 'nextAttemptAt'], { where: `"status" = 'pending'` })
export class WebhookDelivery {
  /** Also the `webhook-id` header, the same on every attempt. */
  @PrimaryColumn('varchar', { length: 24 }) id: string;
  @Column('varchar', { length: 24 }) ownerId: string;

  /** Id of the record and of its task. */
  @Column('varchar', { length: 24 }) taskId: string;

  @ManyToOne(() => Task, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'task_id', foreignKeyConstraintName: 'webhook_deliveries_task_id_fkey' })
  task: Relation<Task>;

  @Column('varchar', { length: 2048 }) url: string;

  /** Null before the first attempt. Lists of deliveries do not read it. */
  @Column('text', { nullable: true, select: false }) body: string | null;

  @Column('varchar', { length: 16 }) status: WebhookDeliveryStatus;
  @Column('integer', { name: 'attempts', default: 0 }) attemptCount: number;
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) nextAttemptAt: Date | null;

  /** When it became or becomes due: a wait for a place does not change it. */
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) dueSince: Date | null;

  /** Until then the process that claimed it makes an attempt. */
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) claimedUntil: Date | null;
  @Column({ type: 'timestamptz', precision: 3 }) createdAt: Date;

  /** When another attempt was asked for; null once it is made. */
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) askedAt: Date | null;
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) completedAt: Date | null;

  @OneToMany(() => WebhookAttempt, (attempt) => attempt.delivery)
  attempts: Relation<WebhookAttempt>[];
}
