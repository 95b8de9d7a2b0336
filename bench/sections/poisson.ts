import { setTimeout as delay } from 'node:timers/promises';
import { BenchEngine, mixedRequests } from '../bench-engine';
import type { LinePlot } from '../plot';
import { randomFrom } from '../judge/scenes';
import { interleave, msOf, quantile } from '../rounds';
import type { Section } from '../section';
import { figure, ratios } from '../section';

/** Requests of one round. */
const count = 30;
/** Share of what the engine can draw one at a time. */
const load = 0.7;
/** Requests by which that is measured before each round. */
const probes = 4;

export const poisson: Section = {
  name: 'poisson',
  title: 'Arrivals at random',
  about:
    `${count} mixed requests a round arrive at random (Poisson) at ${100 * load} % of what the engine can draw one at a time. The same arrivals are replayed with a queue that lets one in at a time ` +
    'and with the engine alone; the latency of a request is the time from its arrival to its picture.',
  rounds: 3,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    let meanMs = 0;
    let measured = -1;
    const replay = async (round: number, one: boolean): Promise<number[]> => {
      // Both sides of a round have the same arrivals.
      if (measured !== round) meanMs = await drawingMs(bench, round);
      measured = round;
      const last: { drawing: Promise<unknown> } = { drawing: Promise.resolve() };
      const draw = (request: Parameters<BenchEngine['draw']>[0]): Promise<unknown> =>
        one ? (last.drawing = last.drawing.then(() => bench.draw(request))) : bench.draw(request);
      const latencies = await latenciesOf(draw, round, meanMs / load);
      return latencies.map((ms) => ms / meanMs);
    };
    const sides = { one: (round: number) => replay(round, true), engine: (round: number) => replay(round, false) };
    const times = await interleave(sides, options.rounds);
    await bench.close();
    const mean = (rounds: number[][]) => rounds.map((latencies) => latencies.reduce((a, b) => a + b) / count);
    const late = (rounds: number[][]) => rounds.map((latencies) => quantile(latencies, 0.95));
    const figures = [
      figure('mean latency: the engine / one at a time', ratios(mean(times.engine), mean(times.one)), { atMost: 0.8 }),
      figure('95th percentile: the engine / one at a time', ratios(late(times.engine), late(times.one))),
      figure('mean latency one at a time / drawing alone', mean(times.one)),
      figure('mean latency of the engine / drawing alone', mean(times.engine)),
    ];
    return { figures, plots: [plotOf({ 'one at a time': times.one.flat(), 'the engine': times.engine.flat() })] };
  },
};

/** What such a request takes alone. */
async function drawingMs(bench: BenchEngine, round: number): Promise<number> {
  const requests = mixedRequests(count, round).slice(0, probes);
  const ms = await msOf(async () => {
    for (const request of requests) await bench.draw(request);
  });
  const stepsOf = (some: typeof requests) => some.reduce((sum, { numInferenceSteps }) => sum + numInferenceSteps!, 0);
  return (ms / probes) * (stepsOf(mixedRequests(count, round)) / count / (stepsOf(requests) / probes));
}

async function latenciesOf(
  draw: (request: Parameters<BenchEngine['draw']>[0]) => Promise<unknown>,
  round: number,
  meanGapMs: number,
): Promise<number[]> {
  const random = randomFrom(1000 + round);
  const startedAt = performance.now();
  let dueAt = startedAt;
  const latencies: Promise<number>[] = [];
  for (const request of mixedRequests(count, round)) {
    dueAt -= Math.log(1 - random()) * meanGapMs;
    await delay(Math.max(0, dueAt - performance.now()));
    const arrivedAt = dueAt;
    latencies.push(draw(request).then(() => performance.now() - arrivedAt));
  }
  return Promise.all(latencies);
}

function plotOf(sides: Record<string, number[]>): LinePlot {
  const shares = Array.from({ length: 41 }, (_, i) => i / 40);
  return {
    kind: 'lines',
    file: 'poisson.svg',
    title: 'Latency at 70 % load',
    x: 'latency (drawing alone: 1)',
    y: 'share of requests',
    yMax: 1,
    series: Object.entries(sides).map(([name, values]) => ({
      name,
      points: shares.map((share) => [quantile(values, share), share]),
    })),
  };
}
