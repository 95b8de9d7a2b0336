import { KeyCounts } from '@app/process';

/** How many times as many tasks as there are places free an owner may have. */
const perFreePlace = 2;

/**
 * Counts a worker's tasks per owner, from their claim until their pictures are stored, and keeps places for whoever
 * comes meanwhile: an owner has at most twice as many tasks as places are left. One alone gets two thirds of them, and
 * however many tasks a few owners have, who has none finds a place. Source: Choudhury and Hahne, "Dynamic queue length
 * thresholds for shared-memory packet switches", 1998.
 */
export class OwnerPlaces {
  private readonly taken = new KeyCounts();

  /** @param count places of all owners */
  constructor(private readonly count: number) {}

  /** Owners who may have no other task here now. Who has none is never among them. */
  get full(): string[] {
    const taken = this.taken.entries();
    const left = taken.reduce((free, [, tasks]) => free - tasks, this.count) - 1;
    return taken.filter(([, tasks]) => tasks + 1 > perFreePlace * left).map(([owner]) => owner);
  }

  /** @returns what gives the place back */
  take(owner: string): () => void {
    return this.taken.add(owner);
  }
}
