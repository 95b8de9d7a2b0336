import { KeyCounts, removeFrom } from '@app/process';
import type { Engine } from '../engine-client/engine';
import { TaskAbortedError } from '../engine-client/task-errors';
import type { Loan, Places } from './places';

/** Tasks of an owner that have been claimed and have no place: pictures of that many are read at a time. */
const perOwner = 4;

/** A loan that gets its place when the pictures of its task are read. */
export interface LaterLoan extends Loan<Engine> {
  /** Waits for a place. @throws TaskAbortedError if `signal` aborts before, or the worker ends */
  ready(signal: AbortSignal): Promise<void>;
  /** Its task has ended. */
  leave(): void;
}

interface Waiting {
  owner: string;
  take: (loan: Loan<Engine>) => void;
  giveUp: () => void;
}

/**
 * The tasks whose pictures are read before they have a place, so that no slow address holds one that others wait for.
 * When they are read they get the next places, in their order, but for those of owners who may have no more now.
 */
export class WaitingForPlace {
  private readonly entered = new KeyCounts();
  private readonly waiting: Waiting[] = [];

  /** @param look asks for a place to be given */
  constructor(
    private readonly places: Pick<Places, 'full' | 'take'>,
    private readonly look: () => void,
  ) {}

  /** Owners of whom no more are to be claimed. */
  get full(): string[] {
    return this.entered.entries().flatMap(([owner, count]) => (count >= perOwner ? [owner] : []));
  }

  enter(owner: string): LaterLoan {
    const hasPlace = this.entered.add(owner);
    let placed: { loan: Loan<Engine>; leave: () => void } | undefined;
    const take = (loan: Loan<Engine>): void => {
      hasPlace();
      placed = { loan, leave: this.places.take(owner) };
    };
    const giveBack = (): void => {
      placed?.loan.giveBack();
      this.look();
    };
    return {
      ready: (signal) => this.placeFor(owner, take, signal),
      engineFor: (request) => placed!.loan.engineFor(request),
      giveBack,
      leave: () => {
        hasPlace();
        placed?.leave();
        giveBack();
      },
    };
  }

  /** Gives a place to whoever is next. @returns whether anybody is */
  giveTo(loan: Loan<Engine>): boolean {
    const { full } = this.places;
    const next = this.waiting.find(({ owner }) => !full.includes(owner));
    next?.take(loan);
    return next !== undefined;
  }

  /** No places are given any more. */
  stop(): void {
    for (const each of [...this.waiting]) each.giveUp();
  }

  private placeFor(owner: string, take: (loan: Loan<Engine>) => void, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        removeFrom(this.waiting, entry);
        signal.removeEventListener('abort', entry.giveUp);
      };
      const entry: Waiting = {
        owner,
        take: (loan) => {
          end();
          take(loan);
          resolve();
        },
        giveUp: () => {
          end();
          reject(new TaskAbortedError('The task was given up before there was a place for it.'));
        },
      };
      this.waiting.push(entry);
      signal.addEventListener('abort', entry.giveUp);
      if (signal.aborted) entry.giveUp();
      else this.look();
    });
  }
}
