import { KeyCounts } from './key-counts';

describe(KeyCounts.name, () => {
  it('counts what is there, each once, and forgets a key that has nothing', () => {
    const counts = new KeyCounts();
    const [first, second] = [counts.add('a'), counts.add('a')];
    counts.add('b');
    first();
    first();
    expect(counts.entries()).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
    second();
    expect([counts.size, counts.has('a'), counts.has('b')]).toEqual([1, false, true]);
  });
});
