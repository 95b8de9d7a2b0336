import { type Arrival, simulate, type SimulatedDevice } from '../../../../test/support/simulated-engine';

/** About Stable Diffusion 1.5 at 256 x 256 on a processor: more rows hardly make one cheaper. */
const device: SimulatedDevice = { callMs: (rows) => rows * 1_000 * (rows < 4 ? 1 : 0.96), decodeMs: 2_400 };

const eight = Array.from({ length: 8 }, (_, i) => i);
const longOf = (owner: string): Arrival => ({ atMs: 0, owner, steps: 50 });

describe('turns on a simulated device', () => {
  it.each([20_000, 200_000, 500_000])(
    'let a short drawing pass eight long ones of another owner, or of eight others, that came %i ms before',
    async (atMs) => {
      const short = { atMs, owner: 'short', steps: 4 };
      const [alone] = await simulate([short], device);
      for (const ownerOf of [() => 'one', (i: number) => `owner ${i}`]) {
        const latencies = await simulate([...eight.map((i) => longOf(ownerOf(i))), short], device);
        expect(latencies[8]).toBeLessThanOrEqual(2 * alone);
      }
    },
  );

  it('give two owners the same part of the device, however many drawings each has', async () => {
    const modest = [longOf('modest'), longOf('modest')];
    const latencies = await simulate([...eight.map(() => longOf('greedy')), ...modest], device);
    const alone = Math.max(...(await simulate(modest, device)));
    // The other owner has as much, and the lead that it may have: twice the last drawing.
    expect(Math.max(...latencies.slice(8))).toBeLessThanOrEqual(3.1 * alone);
  });

  it('let a long drawing end although more short ones of its owner, or of ever new ones, come than can be drawn', async () => {
    const [alone] = await simulate([longOf('one')], device);
    for (const ownerOf of [() => 'one', (i: number) => `owner ${i}`]) {
      const short = Array.from({ length: 300 }, (_, i) => ({ atMs: i * 9_000, owner: ownerOf(i), steps: 4 }));
      const [latency] = await simulate([longOf('one'), ...short], device);
      expect(latency).toBeLessThan(13 * alone);
    }
  });

  it('do not count a shared call as waiting, so that a short drawing still passes many that share all calls', async () => {
    const parallel = { callMs: (rows: number) => 50 + 50 * rows, decodeMs: 10 };
    const many = Array.from({ length: 16 }, () => ({ ...longOf('one'), isGuided: false }));
    const short = { ...longOf('one'), atMs: 32_000, steps: 4, isGuided: false, edge: 128 };
    const [alone] = await simulate([short], parallel);
    const latencies = await simulate([...many, short], parallel);
    expect(Math.max(...latencies.slice(0, -1))).toBeGreaterThan(short.atMs);
    expect(latencies.at(-1)).toBeLessThan(5 * alone);
  });
});
