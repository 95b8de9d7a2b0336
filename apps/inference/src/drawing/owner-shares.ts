import { KeyCounts } from '@app/process';

/** How many times as many tasks as there are slots free an owner may have. */
const perFreeSlot = 2;

/** Tasks, in parts of the slots, that a worker has at a time: the pictures of some are encoded while others are drawn. */
const tasksPerSlot = 4 / 3;

/**
 * The tasks that a worker has of each owner, from their claim until their pictures are stored, and who may have more. An
 * owner has at most twice as many as slots are left: one alone gets two thirds of them, and however many tasks a few
 * owners have, who has none finds a slot. Source: Choudhury and Hahne, "Dynamic queue length thresholds for
 * shared-memory packet switches", 1998.
 */
export class OwnerShares {
  private readonly taken = new KeyCounts();

  /** @param slots for tasks that are worked on at once */
  constructor(private readonly slots: number) {}

  /** Whether another task may be claimed. */
  get hasFree(): boolean {
    return this.count < Math.floor(this.slots * tasksPerSlot);
  }

  /** Owners who may have no other task here now. Who has none is never among them. */
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
