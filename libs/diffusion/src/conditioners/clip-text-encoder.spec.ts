import { weigh } from './clip-text-encoder';

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
