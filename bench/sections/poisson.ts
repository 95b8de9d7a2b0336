import { setTimeout as delay } from 'node:timers/promises';
import type { DrawRequest } from '../../apps/inference/src/engine/engine-protocol';
import { BenchEngine, mixedRequests, type RequestMix } from '../bench-engine';
import { figure, interleave, msOf, quantile, randomFrom, ratios, type Section } from '../section';

/** In one round; of fewer, most come before the queue has its mean length. */
const count = 120;
/** Share of the rate at which the engine draws one request at a time. */
export const load = 0.7;
/** Requests that measure this rate before each round. */
const probes = 15;
/**
 * About what decoding a picture takes, in steps, and how many pictures of a request take as long as one: both only
 * weigh requests against one another.
 */
const decodeSteps = 7;
const picturesAsOne = 1.35;
/** Quick tries beside final pictures, as callers send them. */
export const mix: RequestMix = { steps: [4, 50], pictures: [1, 1, 2, 4] };

type Request = Partial<DrawRequest>;

export const poisson: Section = {
  name: 'poisson',
  title: 'Arrivals at random',
  about:
    `${count} requests a round, of 1 to 4 pictures and 4 to 50 steps, arrive at random (Poisson, given their number) at ${100 * load} % of what the engine can draw one at a time. The same arrivals are replayed with a queue that lets one in at a time ` +
    'and with the engine alone; the latency of a request is the time from its arrival to its picture. Where arrivals happen to make no queue, there is nothing to gain.',
  rounds: 2,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    let meanMs = 0;
    let measured = -1;
    const replay = async (round: number, isAlone: boolean): Promise<number[]> => {
      const requests = mixedRequests(count, round, mix);
      // Both sides of a round have the same arrivals.
      if (measured !== round) meanMs = await drawingMs(bench, requests);
      measured = round;
      let last: Promise<unknown> = Promise.resolve();
      const draw = (request: Request): Promise<unknown> =>
        isAlone ? (last = last.then(() => bench.draw(request))) : bench.draw(request);
      return latencies(draw, requests, arrivals(round, (count * meanMs) / load));
    };
    const sides = { alone: (round: number) => replay(round, true), engine: (round: number) => replay(round, false) };
    const { alone, engine } = await interleave(sides, options.rounds, { warmUp: false });
    await bench.close();
    const of = (value: (latencies: number[]) => number) => ratios(engine.map(value), alone.map(value));
    return [
      figure(
        'mean latency: the engine / one at a time',
        of((all) => all.reduce((a, b) => a + b)),
        { atMost: 0.8 },
      ),
      figure(
        '95th percentile: the engine / one at a time',
        of((all) => quantile(all, 0.95)),
      ),
    ];
  },
};

/** Mean milliseconds of a request alone: some are measured, and scaled to the work of all. */
async function drawingMs(bench: BenchEngine, requests: readonly Request[]): Promise<number> {
  const some = requests.slice(0, probes);
  const ms = await msOf(async () => {
    for (const request of some) await bench.draw(request);
  });
  return (ms / count) * (workOf(requests) / workOf(some));
}

const workOf = (requests: readonly Request[]): number =>
  requests.reduce(
    (sum, { numImages, numInferenceSteps }) =>
      sum + (numImages === 1 ? 1 : numImages! / picturesAsOne) * (numInferenceSteps! + decodeSteps),
    0,
  );

/** Poisson arrivals whose number in a time is given are spread evenly over it. */
export function arrivals(round: number, spanMs: number, length = count): number[] {
  const random = randomFrom(1000 + round);
  return Array.from({ length }, () => random() * spanMs).sort((a, b) => a - b);
}

/** Milliseconds of each request that arrives at its time after the start. */
async function latencies(
  draw: (request: Request) => Promise<unknown>,
  requests: readonly Request[],
  arrivalsMs: readonly number[],
): Promise<number[]> {
  const startedAt = performance.now();
  const pending: Promise<number>[] = [];
  for (const [i, request] of requests.entries()) {
    const arrivedAt = startedAt + arrivalsMs[i];
    await delay(Math.max(0, arrivedAt - performance.now()));
    pending.push(draw(request).then(() => performance.now() - arrivedAt));
  }
  return Promise.all(pending);
}
