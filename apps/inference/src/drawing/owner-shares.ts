import { KeyCounts } from '@app/process';

/** Tasks that an owner may have for each free slot. */
const perFreeSlot = 2;

/** Tasks of a worker, in parts of its slots: the pictures of some are encoded while others are drawn. */
const tasksPerSlot = 4 / 3;

/**
 * The tasks that a worker has of each owner, from their claim until their pictures are stored. An owner may have at
 * most twice as many as slots are left: one owner alone gets two thirds of the slots, and an owner without tasks finds
 * a slot however many a few others have. Source: Choudhury and Hahne, "Dynamic queue length thresholds for
 * shared-memory packet switches", 1998.
 */
export class OwnerShares {
  private readonly taken = new KeyCounts();

  /** @param slots for tasks that are worked on at once */
  constructor(private readonly slots: number) {}

  get hasFree(): boolean {
    return this.count < Math.floor(this.slots * tasksPerSlot);
  }

  /** Owners who may have no further task here now. An owner without any is never among them. */
  get full(): string[] {
    const left = this.slots - this.count - 1;
    return this.taken.entries().flatMap(([owner, tasks]) => (tasks + 1 > perFreeSlot * left ? [owner] : []));
  }

  /** Counts a task of an owner. @returns what has to be called when its pictures are stored */
  take(owner: string): () => void {
    return this.taken.add(owner);
  }

  private get count(): number {
    return this.taken.entries().reduce((sum, [, tasks]) => sum + tasks, 0);
  }
}
