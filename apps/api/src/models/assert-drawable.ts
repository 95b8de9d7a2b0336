import { type AspectRatio, defaults, sizeOf, UnprocessableError } from '@app/domain';
import { type InstalledModel, workingSchedulers } from '@app/model-store';

/** The properties of a request that a model may be unable to draw. */
interface DrawnFields {
  aspectRatio?: AspectRatio;
  /** Absent where a request has no such field. */
  scheduler?: { name: string | undefined };
  /** Of the object with these fields in the body. */
  pointer: string;
}

/** @throws UnprocessableError `SchedulerUnsupported` or `SizeUnsupported`, with what the model takes */
export function assertDrawable(model: InstalledModel, { aspectRatio, scheduler, pointer }: DrawnFields): void {
  assertScheduled(model, { scheduler, pointer });
  const { width, height } = sizeOf[aspectRatio ?? defaults.aspectRatio];
  const { width: onlyWidth = width, height: onlyHeight = height } = model.fixed;
  if (width === onlyWidth && height === onlyHeight) return;
  throw new UnprocessableError(
    'SizeUnsupported',
    `The model "${model.name}" draws ${onlyWidth} x ${onlyHeight} pixels only, and ${width} x ${height} were asked for.`,
    [
      {
        pointer: `${pointer}/aspect_ratio`,
        message: `is ${width} x ${height} pixels; this model draws ${onlyWidth} x ${onlyHeight}`,
      },
    ],
  );
}

function assertScheduled(model: InstalledModel, { scheduler, pointer }: DrawnFields): void {
  const { own, named } = model.schedulerProblems;
  const name = (scheduler?.name ?? model.defaults.scheduler) as keyof typeof named | undefined;
  const problem = name === undefined ? own : named[name];
  if (problem === undefined) return;
  const which = name === undefined ? 'its own scheduler' : `the scheduler ${name}`;
  const working = workingSchedulers(model);
  const advice = scheduler
    ? `Name ${working}.`
    : `Prompts name none: set "scheduler" in its darkroom.json to ${working}.`;
  const message = name === undefined ? 'is needed for this model' : 'cannot be used with this model';
  throw new UnprocessableError(
    'SchedulerUnsupported',
    `The model "${model.name}" cannot draw with ${which}: ${problem} ${advice}`,
    scheduler && [{ pointer: `${pointer}/scheduler`, message }],
  );
}

/** Checks that the model can draw each of an array of Prompts; Prompts have no scheduler. */
export function assertAllDrawable(model: InstalledModel, aspectRatios: readonly (AspectRatio | undefined)[]): void {
  aspectRatios.forEach((aspectRatio, index) => assertDrawable(model, { aspectRatio, pointer: `/${index}` }));
}
