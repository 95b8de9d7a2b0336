import { DrawingAbortedError } from '../../apps/inference/src/engines/drawing-errors';
import { BenchEngine } from '../bench-engine';
import { figure, interleave, median, type Section } from '../section';

export const cancel: Section = {
  name: 'cancel',
  title: 'Cancel',
  about:
    'Time from a cancel in the middle of a drawing to the moment when the engine has let go of it, divided by the time of one step of that drawing. ' +
    'A call of the U-Net that has begun runs to its end.',
  rounds: 15,
  async measure(options) {
    const bench = await BenchEngine.start(options);
    const sides = {
      one: (round: number) => cancelled(bench, 1, round),
      eight: (round: number) => cancelled(bench, 8, round),
    };
    const times = await interleave(sides, options.rounds);
    await bench.close();
    return [figure('one picture', times.one), figure('eight pictures of one request', times.eight)];
  },
};

/** @returns steps from the cancel to the end */
async function cancelled(bench: BenchEngine, numImages: number, round: number): Promise<number> {
  bench.steps.length = 0;
  const cancel = new AbortController();
  let canceledAt = 0;
  const drawing = bench.draw(
    { numImages, numInferenceSteps: 50 },
    {
      signal: cancel.signal,
      onProgress: ({ step }) => {
        if (step !== 4) return;
        const stepMs = median(bench.steps.map((each) => each.stepMs));
        // Each round cancels at another moment of a step.
        setTimeout(
          () => {
            canceledAt = performance.now();
            cancel.abort();
          },
          stepMs * ((round * 0.618) % 1),
        );
      },
    },
  );
  await drawing.catch((error: unknown) => {
    if (!(error instanceof DrawingAbortedError)) throw error;
  });
  return (performance.now() - canceledAt) / median(bench.steps.map(({ stepMs }) => stepMs));
}
