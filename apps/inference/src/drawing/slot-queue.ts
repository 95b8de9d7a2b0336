import { KeyCounts, removeFrom } from '@app/process';
import { TaskAbortedError } from '../engine-client/task-errors';
import type { Slot } from './engine-slots';
import type { OwnerShares } from './owner-shares';

/** Tasks of an owner that have been claimed and have no slot: pictures of that many are read at a time. */
const perOwner = 4;

/** A slot that comes when the pictures of its task are read. */
export interface QueuedSlot extends Slot {
  /** Waits for a slot. @throws TaskAbortedError if `signal` aborts before, or the worker ends */
  ready: (signal: AbortSignal) => Promise<void>;
  /** To be called when its task has ended. */
  leave: () => void;
}

interface Waiting {
  owner: string;
  take: (slot: Slot) => void;
  giveUp: () => void;
}

/**
 * The tasks whose pictures are read before they have a slot, so that no slow address holds one that others wait for.
 * Once read, they get the next slots in order, except tasks of owners who may have no more now.
 */
export class SlotQueue {
  private readonly entered = new KeyCounts();
  private readonly waiting: Waiting[] = [];

  /** @param askForSlot has `giveTo` called when a slot is free */
  constructor(
    private readonly shares: Pick<OwnerShares, 'full' | 'take'>,
    private readonly askForSlot: () => void,
  ) {}

  /** Owners of whom no more are to be claimed. */
  get full(): string[] {
    return this.entered.entries().flatMap(([owner, count]) => (count >= perOwner ? [owner] : []));
  }

  enter(owner: string): QueuedSlot {
    const leaveQueue = this.entered.add(owner);
    let taken: { slot: Slot; endShare: () => void } | undefined;
    const take = (slot: Slot): void => {
      leaveQueue();
      taken = { slot, endShare: this.shares.take(owner) };
    };
    const giveBack = (): void => {
      taken?.slot.giveBack();
      this.askForSlot();
    };
    return {
      ready: (signal) => this.slotFor(owner, take, signal),
      engineFor: (request) => taken!.slot.engineFor(request),
      giveBack,
      leave: () => {
        leaveQueue();
        taken?.endShare();
        giveBack();
      },
    };
  }

  /** Gives a slot to whoever is next. @returns whether anybody is */
  giveTo(slot: Slot): boolean {
    const { full } = this.shares;
    const next = this.waiting.find(({ owner }) => !full.includes(owner));
    next?.take(slot);
    return next !== undefined;
  }

  stop(): void {
    for (const each of [...this.waiting]) each.giveUp();
  }

  private slotFor(owner: string, take: (slot: Slot) => void, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        removeFrom(this.waiting, entry);
        signal.removeEventListener('abort', entry.giveUp);
      };
      const entry: Waiting = {
        owner,
        take: (slot) => {
          end();
          take(slot);
          resolve();
        },
        giveUp: () => {
          end();
          reject(new TaskAbortedError('The task was given up before there was a slot for it.'));
        },
      };
      this.waiting.push(entry);
      signal.addEventListener('abort', entry.giveUp);
      if (signal.aborted) entry.giveUp();
      else this.askForSlot();
    });
  }
}
