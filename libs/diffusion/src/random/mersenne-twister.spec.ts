import { MersenneTwister } from './mersenne-twister';

describe(MersenneTwister.name, () => {
  it('gives the 10,000th number that the C++ standard requires of mt19937', () => {
    const engine = new MersenneTwister(5489);
    for (let i = 1; i < 10_000; i++) engine.next();
    expect(engine.next()).toBe(4123659995);
  });
});
