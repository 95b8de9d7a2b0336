import { costOf } from './drawings';

const drawing = { numImages: 2, width: 512, height: 512, steps: 4, highResolution: false, promptChunks: 1 };

/** What these pictures add to the cost of a drawing. */
const costOfLooking = (references: string[], more: Partial<typeof drawing> = {}): number =>
  costOf({ ...drawing, ...more, inputs: { references } }) - costOf({ ...drawing, ...more, inputs: null });

describe(costOf, () => {
  it('counts each picture that is looked at in each step, whatever the size of what is drawn', () => {
    const one = costOfLooking(['a']);
    expect(one).toBeGreaterThan(0);
    expect(costOfLooking(['a', 'b', 'c'])).toBeCloseTo(3 * one);
    expect(costOfLooking(['a'], { steps: 8 })).toBeCloseTo(2 * one);
    expect(costOfLooking(['a'], { width: 1024 })).toBeCloseTo(one);
    expect(costOfLooking([])).toBe(0);
  });
});
