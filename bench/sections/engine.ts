import { BareGraphs } from '../bare-graphs';
import { BenchEngine, mixedRequests } from '../bench-engine';
import type { BarPlot } from '../plot';
import { interleave, median, msOf } from '../rounds';
import type { Section } from '../section';
import { figure } from '../section';

/** Requests that are there at once. */
const concurrent = 8;

/** One round of the engine with all requests at once, and the same work by the bare graphs right after it. */
interface Shared {
  ms: number;
  /** Time of the engine for its calls: packing, U-Net, guidance, schedulers. */
  stepMs: number;
  bareUnetMs: number;
  bareDecodeMs: number;
  /** One call for one guided picture. */
  bareStepMs: number;
}

export const engine: Section = {
  name: 'engine',
  title: 'Eight requests at once',
  about:
    'Eight requests with different prompts, seeds, schedulers and 10 to 30 steps, through the engine’s thread. What they take is compared with the bare graphs, ' +
    'which run the U-Net with the rows of each of the engine’s calls and decode as many pictures, and with the same requests one at a time. ' +
    'Decoding is not shared: it takes what the last figure says, and limits what sharing can gain.',
  rounds: 5,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const graphs = await BareGraphs.load(options);
    const sides = {
      shared: (round: number) => shared(bench, graphs, round),
      alone: (round: number) =>
        msOf(async () => {
          for (const request of mixedRequests(concurrent, round)) await bench.draw(request);
        }),
    };
    const times = await interleave(sides, options.rounds);
    await bench.close();
    await graphs.release();
    const steps = times.shared.map(({ bareUnetMs, stepMs }) => bareUnetMs / stepMs);
    const whole = times.shared.map(({ bareUnetMs, bareDecodeMs, ms }) => (bareUnetMs + bareDecodeMs) / ms);
    const denoising = times.shared.map(({ bareUnetMs, bareDecodeMs, ms }) => bareUnetMs / (ms - bareDecodeMs));
    const gain = times.shared.map(({ ms }, round) => times.alone[round] / ms);
    const denoisingGain = times.shared.map(
      ({ ms, bareDecodeMs }, round) => (times.alone[round] - bareDecodeMs) / (ms - bareDecodeMs),
    );
    const decoding = times.shared.map(({ bareDecodeMs, bareStepMs }) => bareDecodeMs / concurrent / bareStepMs);
    const figures = [
      figure('the row curve at the same calls / the engine’s calls', steps, { atLeast: 0.95 }),
      figure('the row curve at the same calls / all but decoding', denoising, { atLeast: 0.95 }),
      figure('bare graphs, decoding included / the engine', whole),
      figure('one at a time / the engine: how much faster', gain, { atLeast: 1.25 }),
      figure('the same, without decoding', denoisingGain),
      figure('decoding a picture / a step of one guided picture', decoding),
    ];
    return { figures, plots: [plotOf(median(gain), median(whole))] };
  },
};

async function shared(bench: BenchEngine, graphs: BareGraphs, round: number): Promise<Shared> {
  bench.steps.length = 0;
  const requests = mixedRequests(concurrent, round);
  const ms = await msOf(() => Promise.all(requests.map((request) => bench.draw(request))));
  const result: Shared = { ms, stepMs: 0, bareUnetMs: 0, bareDecodeMs: 0, bareStepMs: await graphs.unetMs(2) };
  for (const { rows, engineMs } of bench.steps) {
    result.stepMs += engineMs;
    result.bareUnetMs += await graphs.unetMs(rows);
  }
  for (let i = 0; i < concurrent; i++) result.bareDecodeMs += await graphs.decodeMs();
  return result;
}

function plotOf(gain: number, whole: number): BarPlot {
  return {
    kind: 'bars',
    file: 'engine.svg',
    title: 'Eight requests: pictures in the same time',
    x: 'pictures, one at a time: 1',
    bars: [
      { name: 'one at a time', value: 1 },
      { name: 'the engine', value: gain },
      { name: 'bare graphs, same calls', value: gain / whole },
    ],
    goal: 1.25,
  };
}
