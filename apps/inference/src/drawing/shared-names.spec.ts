import { schedulerNames as drawnSchedulerNames } from '@app/diffusion';
import { defaultsRange } from '@app/diffusion/files';
import { limits, schedulerNames } from '@app/domain';

describe('what requests may ask for', () => {
  it('is what the engine draws', () => {
    expect([...schedulerNames].sort()).toEqual([...drawnSchedulerNames].sort());
  });

  it("is what a model's defaults may be", () => {
    expect(defaultsRange).toMatchObject({ steps: limits.steps, cfg: limits.cfg });
  });
});
