import { seedSequence } from './seed-sequence';

describe(seedSequence, () => {
  it.each([
    [5, [], 24, [3154616629, 1086096781, 1700057493]],
    [2 ** 40 + 7, [3, 2], 24, [500983476, 713085380, 2292743367, 1579387075]],
    [1, [0, 0], 4, [3023998541, 1548711798, 3149674934, 2073822475, 2027234310, 1528762406]],
  ])('of %d and %j gives the state of numpy', (entropy, spawnKey, poolSize, state) => {
    expect(seedSequence(entropy, spawnKey, poolSize, state.length)).toEqual(state);
  });
});
