import { smoothed, timeLeft, type TrainingCourse, withStep } from './progress';

const after = (steps: readonly [step: number, at: number][]): TrainingCourse => {
  const told = steps.reduce<TrainingCourse | undefined>(
    (known, [step, at]) => withStep(known, { step, total: 100, loss: step, preview: null }, at),
    undefined,
  );
  return told!;
};

describe('the time that a training has left', () => {
  it('is not known after one step', () => {
    expect(timeLeft(after([[1, 0]]))).toBeUndefined();
  });

  it('is what the other steps take at the pace of the last ones', () => {
    expect(timeLeft(after(Array.from({ length: 50 }, (_, i) => [i + 1, 200 * i])))).toBe(50 * 200);
  });

  it('follows a pace that changes', () => {
    const slow = Array.from({ length: 40 }, (_, i) => [i + 1, 1000 * i] as [number, number]);
    const quick = Array.from({ length: 40 }, (_, i) => [i + 41, 40_000 + 100 * i] as [number, number]);
    expect(timeLeft(after([...slow, ...quick]))).toBe(20 * 100);
  });
});

describe('a training that goes on from a checkpoint', () => {
  const again = after([
    [1, 0],
    [2, 100],
    [3, 200],
    [2, 5000],
    [3, 5100],
  ]);

  it('has each step once in its line', () => {
    expect(again.losses.map(({ step }) => step)).toEqual([1, 2, 3]);
  });
});

it('keeps samples with their steps, the newest last', () => {
  let known: TrainingCourse | undefined;
  for (let step = 1; step <= 40; step++) known = withStep(known, { step, total: 40, preview: `data:${step}` }, step);
  expect(known!.samples).toHaveLength(12);
  expect(known!.samples.at(-1)).toEqual({ step: 40, url: 'data:40' });
});

it('smooths losses without a bias to their beginning', () => {
  const flat = Array.from({ length: 20 }, (_, step) => ({ step, loss: 3 }));
  for (const { loss } of smoothed(flat)) expect(loss).toBeCloseTo(3);
  const rough = flat.map(({ step }) => ({ step, loss: step % 2 ? 4 : 2 }));
  const { loss } = smoothed(rough).at(-1)!;
  expect(Math.abs(loss - 3)).toBeLessThan(0.3);
});
