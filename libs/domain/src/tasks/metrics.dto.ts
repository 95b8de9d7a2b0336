import { Decimal } from '../fields/fields-of-answers';
import type { Task } from './task';

/** The times of a drawing, which metrics are made of. */
export type MeasuredTask = Pick<Task, 'sandbox' | 'createdAt' | 'startedAt' | 'completedAt' | 'computeSeconds'>;

/** To milliseconds, as `GET /v1/usage` has its sums. */
const seconds = (value: number): number => Math.round(Math.max(0, value) * 1000) / 1000;

/** How long a drawing took. */
export class MetricsDto {
  @Decimal('From its acceptance until a worker first began it, or until it terminated unbegun.', { example: 0.214 })
  queue_seconds: number;

  @Decimal(
    'Time of a device, as `GET /v1/usage` sums it; of a canceled one it is known a moment after its end. Always 0 with a sandbox key.',
    { example: 3.706 },
  )
  compute_seconds: number;

  @Decimal('From its acceptance until it terminated.', { example: 4.13 }) total_seconds: number;

  /** Null before it has terminated. */
  static of({ sandbox, createdAt, startedAt, completedAt, computeSeconds }: MeasuredTask): MetricsDto | null {
    if (!completedAt) return null;
    const since = (time: Date): number => seconds((time.getTime() - createdAt.getTime()) / 1000);
    return {
      queue_seconds: since(startedAt ?? completedAt),
      compute_seconds: sandbox ? 0 : seconds(computeSeconds ?? 0),
      total_seconds: since(completedAt),
    };
  }
}
