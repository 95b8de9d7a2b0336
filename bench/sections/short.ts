import { BenchEngine } from '../bench-engine';
import { figure, interleave, msOf, ratios, type Section } from '../section';

const longOnes = 8;

export const short: Section = {
  name: 'short',
  title: 'A short request behind long ones',
  about: `Time of a 4-step request of another owner that comes while ${longOnes} requests of 50 steps are being drawn, divided by its time alone.`,
  rounds: 7,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const draw = () => msOf(() => bench.draw({ numInferenceSteps: 4 }));
    const times = await interleave({ alone: draw, behind: () => behindLongOnes(bench, draw) }, options.rounds);
    await bench.close();
    return [figure('behind eight of 50 steps / alone', ratios(times.behind, times.alone), { atMost: 2 })];
  },
};

/** Cancels the long ones when the short one is done. */
async function behindLongOnes(bench: BenchEngine, draw: () => Promise<number>): Promise<number> {
  const enough = new AbortController();
  let ended: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve, reject) => {
    const moving = new Set<number>();
    const drawings = Array.from({ length: longOnes }, (_, seed) => {
      const onProgress = () => void (moving.add(seed).size === longOnes && resolve());
      return bench.draw({ numInferenceSteps: 50, seed }, { signal: enough.signal, onProgress });
    });
    Promise.all(drawings).catch(reject);
    ended = Promise.allSettled(drawings);
  });
  const ms = await draw();
  enough.abort();
  await ended;
  return ms;
}
