import { readSchedulerConfig, type SchedulerJson } from './scheduler-config';
import { integerTimesteps, linspace, roundHalfEven, spacedTimesteps } from './timesteps';

const config = (json: SchedulerJson) => readSchedulerConfig(json, {});

describe(spacedTimesteps.name, () => {
  it.each([
    ['leading', false, [801, 601, 401, 201, 1]],
    ['trailing', false, [999, 799, 599, 399, 199]],
    ['linspace', false, [999, 749.25, 499.5, 249.75, 0]],
    ['leading', true, [831, 665, 499, 333, 167]],
    ['trailing', true, [999, 799, 599, 399, 199]],
    ['linspace', true, [999, 799.2, 599.4, 399.6, 199.8]],
  ])('computes %s spacing, dropping the last: %s', (timestep_spacing, dropsLast, expected) => {
    const timesteps = spacedTimesteps(config({ timestep_spacing, steps_offset: 1 }), 5, 1000, dropsLast);
    expect([...timesteps]).toEqual(expected.map((t) => expect.closeTo(t, 9) as unknown));
  });

  it('gives no more timesteps than steps, unlike numpy.arange', () => {
    const timesteps = spacedTimesteps(config({ timestep_spacing: 'trailing' }), 61);
    expect(timesteps).toHaveLength(61);
    expect(timesteps[60]).toBe(15);
  });
});

describe(integerTimesteps.name, () => {
  it('rejects an offset that leads past the last training timestep', () => {
    const leading = config({ timestep_spacing: 'leading', steps_offset: 1 });
    expect(integerTimesteps(leading, 500)[0]).toBe(999);
    expect(() => integerTimesteps(leading, 1000)).toThrow('lead past timestep 999');
  });
});

describe(roundHalfEven.name, () => {
  it.each([
    [0.5, 0],
    [1.5, 2],
    [2.5, 2],
    [2.4999, 2],
    [2.5001, 3],
    [-0.5, 0],
    [7, 7],
  ])('rounds %d to %d', (value, expected) => expect(roundHalfEven(value)).toBe(expected));
});

describe(linspace.name, () => {
  it('includes both ends', () => expect([...linspace(1, 3, 5)]).toEqual([1, 1.5, 2, 2.5, 3]));
  it('returns the start for a single point', () => expect([...linspace(4, 9, 1)]).toEqual([4]));
});
