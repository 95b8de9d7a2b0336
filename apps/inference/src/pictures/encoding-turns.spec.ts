import { setImmediate } from 'node:timers/promises';
import type { Clock } from './encoding-turns';
import { EncodingTurns } from './encoding-turns';

/** A clock that goes on, when nothing else is left to do, to the next time that somebody waits for. */
class JumpingClock implements Clock {
  private ms = 0;
  private readonly calls = new Set<{ at: number; call: () => void }>();

  now(): number {
    return this.ms;
  }

  after(ms: number, call: () => void): () => void {
    const entry = { at: this.ms + ms, call };
    this.calls.add(entry);
    return () => this.calls.delete(entry);
  }

  /** Goes on until this is done. */
  async until<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const ended = work.finally(() => (isDone = true));
    for (;;) {
      await setImmediate();
      if (isDone) return ended;
      const next = [...this.calls].sort((a, b) => a.at - b.at)[0];
      if (!next) throw new Error('Nobody waits for a time, and nothing goes on.');
      this.calls.delete(next);
      this.ms = next.at;
      next.call();
    }
  }
}

describe(EncodingTurns.name, () => {
  let clock: JumpingClock;
  let order: string[];
  let turns: EncodingTurns;
  const never = new AbortController().signal;
  beforeEach(async () => {
    order = [];
    clock = new JumpingClock();
    turns = new EncodingTurns({ concurrency: 1, clock });
    // Of the first nobody knows how long it takes.
    await clock.until(large('first', 100));
    order = [];
  });
  /** Encodes a large picture, which takes so long. */
  const large = (owner: string, ms = 100, givenUp = never) =>
    turns.large(owner, givenUp, async () => {
      await new Promise<void>((resolve) => void clock.after(ms, resolve));
      order.push(`large of ${owner}`);
    });
  const ordinary = (owner: string) => turns.ordinary(owner, async () => void order.push(`ordinary of ${owner}`));
  /** How long this takes by the clock. */
  const took = async (work: Promise<unknown>): Promise<number> => {
    const startedAt = clock.now();
    await clock.until(work);
    return clock.now() - startedAt;
  };

  it('lets a large picture wait for what is drawn for other owners, and for nothing else', async () => {
    const own = turns.noteDrawing('one');
    expect(await took(large('one'))).toBe(100);
    const others = [turns.noteDrawing('two'), turns.noteDrawing('two'), turns.noteDrawing('three')];
    const waiting = large('one');
    for (const end of others) {
      await ordinary('two');
      end();
    }
    expect(await took(waiting)).toBe(100);
    own();
    const ordinaries = others.map(() => 'ordinary of two');
    expect(order).toEqual(['large of one', ...ordinaries, 'large of one']);
  });

  it('does not let it wait for more than twice as long as with equal shares where others draw without end', async () => {
    for (const owner of ['two', 'three', 'four']) turns.noteDrawing(owner);
    expect(await took(large('one'))).toBe(2 * 3 * 100 + 100);
  });

  it('lets several of them wait at the same time, and not one after the other', async () => {
    for (let i = 0; i < 6; i++) turns.noteDrawing(`drawing ${i}`);
    const pictures = Array.from({ length: 12 }, () => large('one'));
    expect(await took(Promise.all(pictures))).toBe(2 * 6 * 100 + 12 * 100);
  });

  it('leaves the turn to an owner beside whom nobody is drawn for', async () => {
    turns.noteDrawing('two');
    const waiting = large('one');
    expect(await took(large('two'))).toBe(100);
    await clock.until(waiting);
    expect(order).toEqual(['large of two', 'large of one']);
  });

  it('lets one wait for those who have come until it is its turn', async () => {
    const first = large('two');
    const second = large('one');
    const end = turns.noteDrawing('two');
    await clock.until(first);
    const third = large('two');
    await clock.until(third);
    end();
    await clock.until(second);
    expect(order).toEqual(['large of two', 'large of two', 'large of one']);
  });

  it('does not let it wait when it is given up', async () => {
    turns.noteDrawing('two');
    const stop = new AbortController();
    const waiting = large('one', 0, stop.signal);
    stop.abort();
    expect(await took(waiting)).toBe(0);
    expect(await took(large('one', 0, stop.signal))).toBe(0);
  });
});
