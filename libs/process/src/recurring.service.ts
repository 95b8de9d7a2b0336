import type { JsonLogger } from '@app/observability';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Recurring } from './recurring';

/** Work that a service does again and again. */
interface Rounds {
  /** From the end of one round to the beginning of the next, on average. */
  intervalMs: number;
  /** Log message of a failed round. */
  failure: string;
  work: (signal: AbortSignal) => Promise<unknown>;
}

/** Repeats work from the start of the process until just before its database connection ends. */
export abstract class RecurringService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly rounds: Recurring[] = [];

  constructor(protected readonly logger: JsonLogger) {}

  onApplicationBootstrap(): void {
    for (const rounds of this.rounds) rounds.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.rounds.map((rounds) => rounds.stop()));
  }

  /** For the constructor: the first round comes an interval after the process's start. */
  protected repeat({ intervalMs, failure, work }: Rounds): void {
    const onError = ({ message }: Error): void => this.logger.warnSparingly(failure, { reason: message });
    this.rounds.push(new Recurring({ intervalMs, work, onError }));
  }
}
