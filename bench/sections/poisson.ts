import { setTimeout as delay } from 'node:timers/promises';
import type { RequestMix } from '../bench-engine';
import { BenchEngine, evenMix, mixedRequests } from '../bench-engine';
import type { DrawRequest } from '../../apps/inference/src/engine/engine-protocol';
import type { LinePlot } from '../plot';
import { randomFrom } from '../judge/scenes';
import { interleave, msOf, quantile } from '../rounds';
import type { Figure, Goal, Section } from '../section';
import { figure, ratios } from '../section';

/** Requests of one round: with fewer, most come before the queue is as long as it is in the mean. */
const count = 120;
/** Share of what the engine can draw one at a time. */
const load = 0.7;
/** Requests by which that is measured before each round. */
const probes = 15;
/**
 * About what decoding a picture takes, in steps, and how many pictures of a request take as long as one: both only
 * weigh requests against one another.
 */
const decodeSteps = 7;
const picturesAsOne = 1.35;
/** Quick tries beside final pictures, as callers send them. */
const wideMix: RequestMix = { steps: [4, 50], pictures: [1, 1, 2, 4] };

export const poisson: Section = {
  name: 'poisson',
  title: 'Arrivals at random',
  about:
    `${count} requests a round, of 1 to 4 pictures and 4 to 50 steps, arrive at random (Poisson, given their number) at ${100 * load} % of what the engine can draw one at a time. The same arrivals are replayed with a queue that lets one in at a time ` +
    'and with the engine alone; the latency of a request is the time from its arrival to its picture. Means are of all rounds together: where arrivals happen to make no queue, there is nothing to gain.',
  rounds: 2,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const wide = await replayed(bench, wideMix, options.rounds);
    const even = await replayed(bench, evenMix, options.rounds);
    await bench.close();
    const figures = [
      meanLatency('mean latency: the engine / one at a time', wide, { atMost: 0.8 }),
      figure('95th percentile: the engine / one at a time', ratios(late(wide.engine), late(wide.one))),
      figure('time that one at a time draws / time from the first arrival to the last', busy(wide.one)),
      figure('mean latency one at a time / drawing alone', mean(wide.one)),
      figure('mean latency of the engine / drawing alone', mean(wide.engine)),
      meanLatency('one picture of 10 to 30 steps: mean latency', even),
    ];
    return {
      figures,
      plots: [plotOf({ 'one at a time': latenciesOf(wide.one), 'the engine': latenciesOf(wide.engine) })],
    };
  },
};

interface Replay {
  /** Latency of each request, as a multiple of the mean time that a request takes alone. */
  latencies: number[];
  /** Time in which something was drawn, by the time in which requests came. */
  busy: number;
}

/** The mean of all requests, with the range of the rounds. */
function meanLatency(name: string, { one, engine }: Record<'one' | 'engine', Replay[]>, goal?: Goal): Figure {
  const sum = (rounds: Replay[]): number => mean(rounds).reduce((a, b) => a + b);
  return { ...figure(name, ratios(mean(engine), mean(one)), goal), ratio: sum(engine) / sum(one) };
}

const mean = (rounds: Replay[]) => rounds.map(({ latencies }) => latencies.reduce((a, b) => a + b) / count);
const late = (rounds: Replay[]) => rounds.map(({ latencies }) => quantile(latencies, 0.95));
const busy = (rounds: Replay[]) => rounds.map((round) => round.busy);
const latenciesOf = (rounds: Replay[]) => rounds.flatMap(({ latencies }) => latencies);

async function replayed(bench: BenchEngine, mix: RequestMix, rounds: number) {
  let meanMs = 0;
  let measured = -1;
  const replay = async (round: number, one: boolean): Promise<Replay> => {
    const requests = mixedRequests(count, round, mix);
    // Both sides of a round have the same arrivals.
    if (measured !== round) meanMs = await drawingMs(bench, requests);
    measured = round;
    const last: { drawing: Promise<unknown> } = { drawing: Promise.resolve() };
    let drawMs = 0;
    const drawAlone = async (request: Partial<DrawRequest>) => (drawMs += await msOf(() => bench.draw(request)));
    const draw = (request: Partial<DrawRequest>): Promise<unknown> =>
      one ? (last.drawing = last.drawing.then(() => drawAlone(request))) : bench.draw(request);
    const spanMs = (count * meanMs) / load;
    const ms = await replayedMs(draw, requests, arrivals(round, spanMs));
    return { latencies: ms.map((value) => value / meanMs), busy: drawMs / spanMs };
  };
  return interleave(
    { one: (round: number) => replay(round, true), engine: (round: number) => replay(round, false) },
    rounds,
    { warmUp: false },
  );
}

/** What a request takes alone, in the mean: measured by some of them, and by how much work all of them are. */
async function drawingMs(bench: BenchEngine, requests: readonly Partial<DrawRequest>[]): Promise<number> {
  const some = requests.slice(0, probes);
  const ms = await msOf(async () => {
    for (const request of some) await bench.draw(request);
  });
  return (ms / count) * (workOf(requests) / workOf(some));
}

const workOf = (requests: readonly Partial<DrawRequest>[]): number =>
  requests.reduce(
    (sum, { numImages, numInferenceSteps }) =>
      sum + (numImages === 1 ? 1 : numImages! / picturesAsOne) * (numInferenceSteps! + decodeSteps),
    0,
  );

/** Poisson arrivals of which the number in a time is given are spread evenly over it. */
function arrivals(round: number, spanMs: number): number[] {
  const random = randomFrom(1000 + round);
  return Array.from({ length: count }, () => random() * spanMs).sort((a, b) => a - b);
}

/** The latency of each request, in milliseconds, if they arrive at these times after the start. */
async function replayedMs(
  draw: (request: Partial<DrawRequest>) => Promise<unknown>,
  requests: readonly Partial<DrawRequest>[],
  arrivalsMs: readonly number[],
): Promise<number[]> {
  const startedAt = performance.now();
  const latencies: Promise<number>[] = [];
  for (const [i, request] of requests.entries()) {
    const arrivedAt = startedAt + arrivalsMs[i];
    await delay(Math.max(0, arrivedAt - performance.now()));
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
