import { type Arrival, simulate, type SimulatedDevice } from '../../test/support/simulated-engine';
import { BareGraphs } from '../bare-graphs';
import { mixedRequests } from '../bench-engine';
import { figure, interleave, median, processorMs, quantile, type Section } from '../section';
import { arrivals, load, mix } from './poisson';

const edge = 256;
const counts = [1, 2, 4, 8];
/** Requests of one replay, and replays. */
const requests = 120;
const replays = [1, 2, 3, 4, 5, 6];

export const fullSize: Section = {
  name: 'full-size',
  title: 'A model at full size',
  about:
    `The model of \`--full-size\` at ${edge} x ${edge}. Processor time of a row in one bare \`session.run\` of the U-Net, divided by its time in a call of 2 rows. What follows from that for turns, ` +
    'by the engine’s own loop on a simulated device, whose calls take these times: hours of drawing in seconds, and the same on a busy machine. Arrivals are those of "Arrivals at random"; medians of replays would be ruled by those without a queue, so these are of all replays together.',
  rounds: 3,
  async measure({ rounds, fullSize: model, ...options }) {
    const graphs = await BareGraphs.load({ ...options, model: model! }, edge);
    const sides: Record<string, () => Promise<number>> = { decode: () => processorMs(() => graphs.decodeMs()) };
    for (const count of counts) sides[count] = () => processorMs(() => graphs.unetMs(count));
    const times = await interleave(sides, rounds);
    await graphs.release();
    const ofRows = (count: number): number[] => times[count].map((ms) => ms / count);
    const device = deviceOf(new Map(counts.map((count) => [count, median(ofRows(count))])), median(times.decode));
    const rows = counts.map((count) => {
      const ratios = ofRows(count).map((ms, round) => ms / ofRows(2)[round]);
      return {
        ...figure(`${count} ${count === 1 ? 'row' : 'rows'} / 2 rows`, ratios),
        detail: secondsOf(ofRows(count)),
      };
    });
    return [...rows, ...(await turnsOn(device))];
  },
};

const secondsOf = (ms: readonly number[]): string => `${(median(ms) / 1000).toFixed(2)} s of a processor a row`;

/** A call takes the time per row of the next larger measured number of rows. */
function deviceOf(rowMs: ReadonlyMap<number, number>, decodeMs: number): SimulatedDevice {
  const callMs = (rows: number): number => rows * rowMs.get(counts.find((count) => count >= rows) ?? counts.at(-1)!)!;
  return { callMs, decodeMs };
}

async function turnsOn(device: SimulatedDevice) {
  const eight = Array.from({ length: 8 }, (_, i): Arrival => ({ atMs: 0, owner: `owner ${i}`, steps: 50 }));
  const [together, apart] = [await simulate(eight, device), await simulate(eight, device, true)];
  const behind: number[] = [];
  for (const atMs of [20_000, 100_000, 500_000]) {
    const short = { atMs, owner: 'short', steps: 4 };
    const [alone] = await simulate([short], device);
    const latencies = await simulate([...eight.map((long) => ({ ...long, owner: 'one' })), short], device);
    behind.push(latencies[8] / alone);
  }
  const engine: number[] = [];
  const alone: number[] = [];
  for (const seed of replays) {
    const wanted = mixedRequests(requests, seed, mix).map(({ numInferenceSteps, numImages }, i): Arrival => ({
      ...{ atMs: 0, owner: `owner ${i}`, steps: numInferenceSteps!, pictures: numImages! },
    }));
    const busyMs = Math.max(...(await simulate(wanted, device, true)));
    const times = arrivals(seed, busyMs / load, requests);
    const coming = wanted.map((each, i) => ({ ...each, atMs: Math.floor(times[i]) }));
    engine.push(...(await simulate(coming, device)));
    alone.push(...(await simulate(coming, device, true)));
  }
  const mean = (all: readonly number[]): number => all.reduce((sum, ms) => sum + ms, 0) / all.length;
  const p95 = (all: readonly number[]): number => quantile(all, 0.95);
  return [
    figure('simulated: eight at once, one at a time / the engine', [Math.max(...apart) / Math.max(...together)]),
    figure('simulated: 4 steps behind eight of 50 / alone', behind, { atMost: 2 }),
    figure('simulated: mean latency: the engine / one at a time', [mean(engine) / mean(alone)], { atMost: 0.9 }),
    figure('simulated: 95th percentile: the engine / one at a time', [p95(engine) / p95(alone)], { atMost: 1.05 }),
  ];
}
