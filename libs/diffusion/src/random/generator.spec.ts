import { Generator, MersenneTwister } from './generator';

describe(Generator.name, () => {
  describe('randn', () => {
    it("draws torch's numbers, for fewer than 16 values and for more", () => {
      // torch.randn(3), then torch.randn(16)[:3], with torch.Generator().manual_seed(0)
      const few = new Generator(0).randn(3);
      expect([...few]).toEqual(
        [1.5409960746765137, -0.293428897857666, -2.1787893772125244].map((v) => expect.closeTo(v, 6) as unknown),
      );
      const many = new Generator(0).randn(16);
      expect([...many.subarray(0, 3)]).toEqual(
        [-1.1258398294448853, -1.152360200881958, -0.2505785822868347].map((v) => expect.closeTo(v, 6) as unknown),
      );
    });

    it('has a mean of 0 and a variance of 1', () => {
      const values = new Generator(7).randn(100_000);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
      expect(Math.abs(mean)).toBeLessThan(0.01);
      expect(Math.abs(variance - 1)).toBeLessThan(0.01);
    });

    it('continues where the last draw ended', () => {
      const together = new Generator(3).randn(64);
      const generator = new Generator(3);
      expect(generator.randn(32)).toEqual(together.subarray(0, 32));
      expect(generator.randn(32)).toEqual(together.subarray(32));
    });

    it('uses the lowest 32 bits of the seed', () => {
      expect(new Generator(2 ** 32 + 5).randn(16)).toEqual(new Generator(5).randn(16));
      expect(new Generator(6).randn(16)).not.toEqual(new Generator(5).randn(16));
    });
  });

  it.each([0.5, NaN, Infinity, 2 ** 53])('rejects the seed %d', (seed) => {
    expect(() => new Generator(seed)).toThrow('must be an integer');
  });
});

describe(MersenneTwister.name, () => {
  it('gives the 10,000th number that the C++ standard requires of mt19937', () => {
    const engine = new MersenneTwister(5489);
    for (let i = 1; i < 10_000; i++) engine.next();
    expect(engine.next()).toBe(4123659995);
  });
});
