import { EmbeddingCache, weigh } from './clip-text-encoder';

describe(weigh.name, () => {
  it('multiplies each token and keeps the mean', () => {
    const weighted = weigh(Float32Array.of(1, 3, 1, 3), [1, 2]);
    // Times the weights: 1 3 2 6, mean 3 in place of 2.
    expect([...weighted]).toEqual([2 / 3, 2, 4 / 3, 4].map(Math.fround));
  });

  it('does not change embeddings whose weighted mean is zero', () => {
    expect([...weigh(Float32Array.of(1, 1), [1, -1])]).toEqual([1, -1]);
  });
});

describe(EmbeddingCache.name, () => {
  it('drops the least recently used row', () => {
    const cache = new EmbeddingCache(2);
    const rows = [[1], [2], [3]].map((ids) => ({ ids, row: { states: Float32Array.from(ids) } }));
    cache.set(rows[0].ids, rows[0].row);
    cache.set(rows[1].ids, rows[1].row);
    cache.get(rows[0].ids);
    cache.set(rows[2].ids, rows[2].row);
    expect(cache.get([1])).toBe(rows[0].row);
    expect(cache.get([2])).toBeUndefined();
    expect(cache.get([3])).toBe(rows[2].row);
  });
});
