import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { FairTurns } from '@app/process';

/** Of one caller at a time: a name server may be silent for long, and the process has eight threads for look-ups. */
export const lookUpsPerOwner = 2;

/** Resolves names with the system's resolver. Look-ups of one caller queue, so that those of others find a thread. */
export class DnsLookUps {
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
