import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { FairTurns } from '@app/process';

/**
 * Parallel DNS look-ups of one caller: a name server may be silent for a long time, and the process has eight
 * threads for all look-ups.
 */
export const lookUpsPerOwner = 2;

/**
 * Resolves names with the system's resolver. Look-ups of one caller wait for each other, so that others' find a thread.
 */
export class DnsLookUps {
  /** As many wait as the caller has attempts in progress. */
  private readonly turns = new FairTurns({ keyConcurrency: lookUpsPerOwner });

  constructor(
    private readonly lookUp: (hostname: string, options: LookupAllOptions) => Promise<LookupAddress[]> = lookup,
  ) {}

  /** @param signal after it aborts, no look-up begins. */
  run(ownerId: string, hostname: string, options: LookupAllOptions, signal: AbortSignal): Promise<LookupAddress[]> {
    return this.turns.run(ownerId, () => {
      signal.throwIfAborted();
      return this.lookUp(hostname, options);
    });
  }
}
