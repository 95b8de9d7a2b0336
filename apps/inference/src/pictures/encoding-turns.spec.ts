import { EncodingTurns } from './encoding-turns';

describe(EncodingTurns.name, () => {
  let order: string[];
  let turns: EncodingTurns;
  const never = new AbortController().signal;
  afterEach(() => jest.useRealTimers());
  beforeEach(async () => {
    jest.useFakeTimers();
    order = [];
    turns = new EncodingTurns(1);
    // Nobody knows yet how long a large one takes.
    await until(large('first', 100));
    order = [];
  });
  const large = (owner: string, ms = 100, givenUp = never) =>
    turns.large(owner, givenUp, async () => {
      await new Promise<void>((resolve) => setTimeout(resolve, ms));
      order.push(`large of ${owner}`);
    });
  const ordinary = (owner: string) => turns.ordinary(owner, async () => void order.push(`ordinary of ${owner}`));
  /** Goes on, from timer to timer, until this is done. */
  const until = async (work: Promise<unknown>): Promise<void> => {
    let isDone = false;
    void work.finally(() => (isDone = true));
    while (!isDone) await jest.advanceTimersToNextTimerAsync();
  };
  const took = async (work: Promise<unknown>): Promise<number> => {
    const startedAt = performance.now();
    await until(work);
    return performance.now() - startedAt;
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
    await until(waiting);
    expect(order).toEqual(['large of two', 'large of one']);
  });

  it('lets one wait for those who have come until it is its turn', async () => {
    const first = large('two');
    const second = large('one');
    const end = turns.noteDrawing('two');
    await until(first);
    const third = large('two');
    await until(third);
    end();
    await until(second);
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
