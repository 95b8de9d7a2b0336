import { setTimeout as delay } from 'node:timers/promises';
import type { RequestMix } from '../bench-engine';
import { BenchEngine, evenMix, mixedRequests } from '../bench-engine';
import type { DrawRequest } from '../../apps/inference/src/engine/engine-protocol';
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
const probes = 6;
/** About what decoding a picture takes, in steps; it only weighs the requests against one another. */
const decodeSteps = 10;
/** Quick tries beside final pictures, as callers send them. */
const wideMix: RequestMix = { steps: [4, 50], pictures: [1, 1, 2, 4] };

export const poisson: Section = {
  name: 'poisson',
  title: 'Arrivals at random',
  about:
    `${count} requests a round, of 1 to 4 pictures and 4 to 50 steps, arrive at random (Poisson) at ${100 * load} % of what the engine can draw one at a time. The same arrivals are replayed with a queue that lets one in at a time ` +
    'and with the engine alone; the latency of a request is the time from its arrival to its picture.',
  rounds: 3,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const wide = await replayed(bench, wideMix, options.rounds);
    const even = await replayed(bench, evenMix, options.rounds);
    await bench.close();
    const figures = [
      figure('mean latency: the engine / one at a time', ratios(mean(wide.engine), mean(wide.one)), { atMost: 0.8 }),
      figure('95th percentile: the engine / one at a time', ratios(late(wide.engine), late(wide.one))),
      figure('mean latency one at a time / drawing alone', mean(wide.one)),
      figure('mean latency of the engine / drawing alone', mean(wide.engine)),
      figure('one picture of 10 to 30 steps: mean latency', ratios(mean(even.engine), mean(even.one))),
    ];
    return { figures, plots: [plotOf({ 'one at a time': wide.one.flat(), 'the engine': wide.engine.flat() })] };
  },
};

/** Latencies of each round, as multiples of the mean time that a request takes alone. */
type Latencies = number[][];

const mean = (rounds: Latencies) => rounds.map((latencies) => latencies.reduce((a, b) => a + b) / count);
const late = (rounds: Latencies) => rounds.map((latencies) => quantile(latencies, 0.95));

async function replayed(bench: BenchEngine, mix: RequestMix, rounds: number) {
  let meanMs = 0;
  let measured = -1;
  const replay = async (round: number, one: boolean): Promise<number[]> => {
    const requests = mixedRequests(count, round, mix);
    // Both sides of a round have the same arrivals.
    if (measured !== round) meanMs = await drawingMs(bench, requests);
    measured = round;
    const last: { drawing: Promise<unknown> } = { drawing: Promise.resolve() };
    const draw = (request: Partial<DrawRequest>): Promise<unknown> =>
      one ? (last.drawing = last.drawing.then(() => bench.draw(request))) : bench.draw(request);
    const latencies = await latenciesOf(draw, requests, round, meanMs / load);
    return latencies.map((ms) => ms / meanMs);
  };
  return interleave(
    { one: (round: number) => replay(round, true), engine: (round: number) => replay(round, false) },
    rounds,
  );
}

/** What a request takes alone, in the mean: measured by some of them, and by how many steps all of them have. */
async function drawingMs(bench: BenchEngine, requests: readonly Partial<DrawRequest>[]): Promise<number> {
  const some = requests.slice(0, probes);
  const ms = await msOf(async () => {
    for (const request of some) await bench.draw(request);
  });
  const work = (of: typeof requests) =>
    of.reduce((sum, { numImages, numInferenceSteps }) => sum + numImages! * (numInferenceSteps! + decodeSteps), 0);
  return (ms / count) * (work(requests) / work(some));
}

async function latenciesOf(
  draw: (request: Partial<DrawRequest>) => Promise<unknown>,
  requests: readonly Partial<DrawRequest>[],
  round: number,
  meanGapMs: number,
): Promise<number[]> {
  const random = randomFrom(1000 + round);
  const startedAt = performance.now();
  let dueAt = startedAt;
  const latencies: Promise<number>[] = [];
  for (const request of requests) {
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
