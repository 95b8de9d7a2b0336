import fc from 'fast-check';
import { betaQuantile, logFloat32 } from './special-functions';

describe(logFloat32.name, () => {
  it('equals numpy to the last bit, even if that is not the nearest float32', () => {
    const values = Float32Array.of(
      4.698116779327393,
      0.622705340385437,
      0.9633731842041016,
      3.923658847808838,
      2.2443928718566895,
    );
    expect([...logFloat32(values)]).toEqual([
      1.5471618175506592, -0.47368180751800537, -0.03731442242860794, 1.3670246601104736, 0.8084350824356079,
    ]);
    expect(values.map(Math.log)).not.toEqual(logFloat32(values));
  });

  it('is correct to within four units in the last place', () => {
    fc.assert(
      fc.property(fc.float({ min: Math.fround(1e-30), max: Math.fround(1e30), noNaN: true }), (value) => {
        const exact = Math.log(value);
        const [log] = logFloat32(Float32Array.of(value));
        expect(Math.abs(log - exact)).toBeLessThanOrEqual(4 * 2 ** -23 * Math.max(Math.abs(exact), 2 ** -23));
      }),
    );
  });
});

describe(betaQuantile, () => {
  // scipy.stats.beta.ppf(probability, 0.6, 0.6)
  it.each([
    [0, 0],
    [0.001, 1.855873851745199e-5],
    [0.1, 0.03958440558878085],
    [0.3, 0.23401700387523572],
    [0.5, 0.5],
    [0.75, 0.824319621347305],
    [0.9, 0.9604155944112192],
    [0.999, 0.9999814412614826],
    [1, 1],
  ])('of %d is %d', (probability, expected) => {
    expect(Math.abs(betaQuantile(probability) - expected)).toBeLessThan(1e-13);
  });
});
