import fc from 'fast-check';
import { logFloat32 } from './log-float32';

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
