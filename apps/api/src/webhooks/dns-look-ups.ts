import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { FairTurns } from '@app/process';

/**
 * Parallel DNS look-ups of one caller: a name server may be silent for a long time, and the process has eight
 * threads for all look-ups.
 */
export const lookUpsPerOwner = 2;

type LookUp = (hostname: string, options: LookupAllOptions) => Promise<LookupAddress[]>;

/**
 * Resolves names with the system's resolver. Look-ups of one caller wait for each other, so that others' find a thread.
 */
export class DnsLookUps {
  private readonly owners = new Map<string, { turns: FairTurns; count: number }>();

  constructor(private readonly lookUp: LookUp = lookup) {}

  /** @param signal after it aborts, no look-up begins. */
  async run(
    ownerId: string,
    hostname: string,
    options: LookupAllOptions,
    signal: AbortSignal,
  ): Promise<LookupAddress[]> {
    const own = this.owners.get(ownerId) ?? {
      // At most as many wait as the caller has attempts in progress.
      turns: new FairTurns({ concurrency: lookUpsPerOwner, perKey: Infinity, total: Infinity }),
      count: 0,
    };
    this.owners.set(ownerId, own);
    own.count++;
    try {
      return await own.turns.run(ownerId, () => {
        signal.throwIfAborted();
        return this.lookUp(hostname, options);
      });
    } finally {
      if (--own.count === 0) this.owners.delete(ownerId);
    }
  }
}
