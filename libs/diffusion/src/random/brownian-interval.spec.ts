import { BrownianInterval, seedSequence } from './brownian-interval';

describe(BrownianInterval, () => {
  const motion = () => new BrownianInterval(7, 0.03, 14.6, 16);

  it('is the same in whatever order it is asked for', () => {
    const [one, other] = [motion(), motion()];
    const forward = [one.between(1, 2), one.between(5, 6)];
    const backward = [other.between(5, 6), other.between(1, 2)].reverse();
    expect(forward).toEqual(backward);
  });

  it('adds up', () => {
    const whole = motion().between(1, 6);
    const [first, second] = [motion().between(1, 2.5), motion().between(2.5, 6)];
    whole.forEach((value, i) => expect(value).toBeCloseTo(first[i] + second[i], 5));
  });

  it('stands still outside its interval, and over no time', () => {
    expect(
      motion()
        .between(15, 20)
        .every((value) => value === 0),
    ).toBe(true);
    expect(
      motion()
        .between(3, 3)
        .every((value) => value === 0),
    ).toBe(true);
  });

  it('differs by its seed', () => {
    expect(new BrownianInterval(8, 0.03, 14.6, 16).between(1, 2)).not.toEqual(motion().between(1, 2));
  });
});

describe(seedSequence, () => {
  it.each([
    [5, [], 24, [3154616629, 1086096781, 1700057493]],
    [2 ** 40 + 7, [3, 2], 24, [500983476, 713085380, 2292743367, 1579387075]],
    [1, [0, 0], 4, [3023998541, 1548711798, 3149674934, 2073822475, 2027234310, 1528762406]],
  ])('of %d and %j gives the state of numpy', (entropy, spawnKey, poolSize, state) => {
    expect(seedSequence(entropy, spawnKey, poolSize, state.length)).toEqual(state);
  });
});
