import { EncodingTurns } from './encoding-turns';

describe(EncodingTurns.name, () => {
  let now = 0;
  let order: string[];
  let turns: EncodingTurns;
  const never = new AbortController().signal;
  beforeEach(() => {
    order = [];
    turns = new EncodingTurns(() => now);
  });
  /** Encodes a large picture, which takes so long by the clock. */
  const large = (owner: string, ms: number, givenUp = never) =>
    turns.large(owner, givenUp, async () => {
      now += ms;
      order.push(`large of ${owner}`);
    });
  const ordinary = (owner: string) => turns.ordinary(owner, async () => void order.push(`ordinary of ${owner}`));

  it('lets a large picture wait for what is drawn for other owners, and for nothing else', async () => {
    await large('one', 1e8);
    const own = turns.drawing('one');
    await large('one', 1e8);
    const others = [turns.drawing('two'), turns.drawing('two'), turns.drawing('three')];
    const waiting = large('one', 1e8);
    for (const end of others) {
      await ordinary('two');
      end();
    }
    await waiting;
    own();
    const ordinaries = others.map(() => 'ordinary of two');
    expect(order).toEqual(['large of one', 'large of one', ...ordinaries, 'large of one']);
  });

  it('does not let it wait for good where others draw without end', async () => {
    turns.drawing('two');
    // Of the first nobody knows how long it takes.
    for (let i = 0; i < 3; i++) await large('one', 5);
    expect(order).toHaveLength(3);
  });

  it('does not let it wait when it is given up', async () => {
    await large('one', 1e8);
    turns.drawing('two');
    const stop = new AbortController();
    const waiting = large('one', 0, stop.signal);
    stop.abort();
    await waiting;
    await large('one', 0, stop.signal);
    expect(order).toHaveLength(3);
  });
});
