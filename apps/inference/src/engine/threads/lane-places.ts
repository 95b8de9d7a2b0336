import type { Lane } from '../lane';
import { BegunBeside } from './begun-beside';
import type { Changes } from './changes';

/** Which lanes are at a piece of work. */
export class LanePlaces {
  /** For each lane that is busy, what has begun in others since. */
  private readonly busy = new Map<Lane, BegunBeside>();

  /** @param changes told when a lane has ended a piece of work */
  constructor(
    private readonly count: number,
    private readonly changes: Changes,
  ) {}

  /** Whether no lane is at anything. */
  get areIdle(): boolean {
    return this.busy.size === 0;
  }

  /** A lane that may begin a piece of work: none while another hangs. */
  get free(): Lane | undefined {
    if (![...this.busy.values()].every(({ mayBegin }) => mayBegin)) return undefined;
    return Array.from({ length: this.count }, (_, lane) => lane).find((lane) => !this.busy.has(lane));
  }

  /** Begins a piece of work, and does not wait for it. @param work never rejects */
  begin(lane: Lane, work: () => Promise<void>): void {
    for (const beside of this.busy.values()) beside.note();
    this.busy.set(lane, new BegunBeside());
    void work().finally(() => {
      this.busy.delete(lane);
      this.changes.note();
    });
  }

  /** Resolves when no lane is at anything. */
  async idle(): Promise<void> {
    while (!this.areIdle) await this.changes.next();
  }
}
