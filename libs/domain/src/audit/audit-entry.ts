import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { bigintAsNumber } from '../common/column';
import type { TaskKind } from '../tasks/task';

/** What became of a request: a status of its task, or that its record was deleted before it had one. */
export const auditDecisions = ['accepted', 'refused', 'succeeded', 'failed', 'canceled', 'deleted'] as const;
export type AuditDecision = (typeof auditDecisions)[number];

/**
 * Who asked for what, and what became of it. It outlives the record. A trigger on `tasks` writes the decision, so that
 * no status is missed.
 */
@Entity('audit_entries')
@Index('audit_entries_at_idx', ['at'])
@Index('audit_entries_task_idx', ['taskId'], { where: `"task_id" IS NOT NULL` })
@Index('audit_entries_user_idx', ['endUser'], { where: `"end_user" IS NOT NULL` })
export class AuditEntry {
  @PrimaryColumn('bigint', { generated: 'increment', transformer: bigintAsNumber }) id: number;
  @Column({ type: 'timestamptz', precision: 3 }) at: Date;
  @Column('varchar', { length: 24 }) ownerId: string;

  /** That of its key; a trigger fills it in. */
  @Column('varchar', { length: 24, nullable: true }) accountId: string;
  @Column('varchar', { length: 256, nullable: true }) endUser: string | null;

  /** Null where the request was refused. */
  @Column('varchar', { length: 24, nullable: true }) taskId: string | null;
  @Column('varchar', { length: 16 }) kind: TaskKind;
  @Column('varchar', { length: 64 }) model: string;

  /** The weights that drew it. */
  @Column('varchar', { length: 256, nullable: true }) servedBy: string | null;

  /** What was asked for: the prompt, or the captions of a training; null where weights are fetched. */
  @Column('text', { nullable: true }) prompt: string | null;
  @Column('varchar', { length: 16 }) decision: AuditDecision;

  /** Why it was refused or has failed. */
  @Column('text', { nullable: true }) reason: string | null;

  /** Pictures that were not stored, and those that were although they are flagged. */
  @Column('integer', { default: 0 }) filtered: number;
  @Column('integer', { default: 0 }) flagged: number;

  /** What flagged them. */
  @Column('text', { array: true, default: () => `'{}'` }) flaggedBy: string[];
  @Column({ type: 'timestamptz', precision: 3, nullable: true }) decidedAt: Date | null;
}
