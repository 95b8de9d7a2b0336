import type { DrawRequest } from '../../apps/inference/src/engine/engine-protocol';
import { BareGraphs } from '../bare-graphs';
import { BenchEngine, mixedRequests } from '../bench-engine';
import { figure, interleave, msOf, type Section } from '../section';

const counts = [1, 2, 4, 8, 12, 16];

export const rows: Section = {
  name: 'rows',
  title: 'Rows of one call',
  about:
    'Time of a row in one bare `session.run` of the U-Net, divided by its time in a call of 2 rows: what one guided picture takes. This is what sharing calls can gain.',
  rounds: 12,
  async measure(options) {
    const graphs = await BareGraphs.load(options);
    const sides = Object.fromEntries(counts.map((count) => [String(count), () => graphs.unetMs(count)]));
    const times = await interleave(sides, options.rounds);
    await graphs.release();
    return counts.map((count) => {
      const ratios = times[count].map((ms, round) => ms / count / (times[2][round] / 2));
      return figure(`${count} ${count === 1 ? 'row' : 'rows'} / 2 rows`, ratios);
    });
  },
};

const concurrent = 8;

/** One round of the engine with all requests at once, and the same work by the bare graphs right after it. */
interface Shared {
  engineMs: number;
  /** The engine's milliseconds for its calls: packing, denoiser, guidance, schedulers. */
  stepMs: number;
  /** The bare denoiser at the same calls. */
  bareUnetMs: number;
  bareDecodeMs: number;
}

export const engine: Section = {
  name: 'engine',
  title: 'Eight requests at once',
  about:
    'Eight requests with different prompts, seeds, schedulers and 10 to 30 steps, through the engine’s thread. What they take is compared with the bare graphs, ' +
    'which run the U-Net with the rows of each of the engine’s calls and decode as many pictures, and with the same requests one at a time. ' +
    'Decoding is not shared, and limits what sharing can gain.',
  rounds: 5,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const graphs = await BareGraphs.load(options);
    const sides = {
      shared: (round: number) => sharedCalls(bench, graphs, mixedRequests(concurrent, round)),
      alone: (round: number) =>
        msOf(async () => {
          for (const request of mixedRequests(concurrent, round)) await bench.draw(request);
        }),
    };
    const times = await interleave(sides, options.rounds);
    await bench.close();
    await graphs.release();
    const gain = times.shared.map(({ engineMs }, round) => times.alone[round] / engineMs);
    const denoisingGain = times.shared.map(
      ({ engineMs, bareDecodeMs }, round) => (times.alone[round] - bareDecodeMs) / (engineMs - bareDecodeMs),
    );
    const steps = times.shared.map(({ bareUnetMs, stepMs }) => bareUnetMs / stepMs);
    const denoising = times.shared.map(
      ({ bareUnetMs, bareDecodeMs, engineMs }) => bareUnetMs / (engineMs - bareDecodeMs),
    );
    return [
      figure('the row curve at the same calls / the engine’s calls', steps, { atLeast: 0.95 }),
      figure('the row curve at the same calls / all but decoding', denoising, { atLeast: 0.95 }),
      figure('one at a time / the engine: how much faster', gain, { atLeast: 1.1 }),
      figure('the same, without decoding', denoisingGain),
    ];
  },
};

/** Draws some requests at once, then runs the bare graphs for the same calls and pictures. */
async function sharedCalls(
  bench: BenchEngine,
  graphs: BareGraphs,
  requests: readonly Partial<DrawRequest>[],
): Promise<Shared> {
  bench.steps.length = 0;
  const engineMs = await msOf(() => Promise.all(requests.map((request) => bench.draw(request))));
  const result: Shared = { engineMs, stepMs: 0, bareUnetMs: 0, bareDecodeMs: 0 };
  for (const { rows, stepMs } of bench.steps) {
    result.stepMs += stepMs;
    result.bareUnetMs += await graphs.unetMs(rows);
  }
  for (const _ of requests) result.bareDecodeMs += await graphs.decodeMs();
  return result;
}
