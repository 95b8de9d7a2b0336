import { FieldProblems, UnprocessableError } from '@app/domain';
import { type InstalledModel, problemOfKind, workingSchedulers } from '@app/model-store';

interface Asked {
  /** Absent where requests have no such field. */
  scheduler?: { name: string | undefined };
  image?: string | null | undefined;
  mask?: string | null | undefined;
  /** JSON pointer to the part of the body that asks. */
  pointer?: string;
}

/**
 * @throws UnprocessableError `ModelNeedsPicture`, `PictureUnsupported`, `MaskUnsupported` or `SchedulerUnsupported`,
 * with what the model takes
 */
export function assertDrawable(model: InstalledModel, { scheduler, image, mask, pointer = '' }: Asked): void {
  const { name, kind } = model;
  const problemOfModel = problemOfKind(model, { image, mask });
  if (problemOfModel !== undefined)
    throw new UnprocessableError('ModelNeedsPicture', `The model "${name}" cannot draw this. ${problemOfModel}`, [
      {
        pointer: `${pointer}/${image && kind === 'inpainting' ? 'mask' : 'image'}`,
        message: 'is needed by this model',
      },
    ]);
  if (image) assertReadsPictures(model, [`${pointer}/image`, ...(mask ? [`${pointer}/mask`] : [])]);
  if (mask && kind === 'instruct-pix2pix')
    throw new UnprocessableError('MaskUnsupported', `The model "${name}" changes whole pictures; it takes no mask.`, [
      { pointer: `${pointer}/mask`, message: 'cannot be used with this model' },
    ]);
  assertScheduler(model, scheduler);
}

/** What only some families of models can do. */
interface Wanted {
  negativePrompt: string | null;
  promptWeighting: boolean;
  inputs: { control?: readonly unknown[] } | null;
}

/** @throws InvalidError with a sentence for each thing that the model's family cannot do */
export function assertAble(
  { cannot = {} }: InstalledModel,
  tasks: readonly Wanted[],
  pointerTo: (index: number, field: string) => string,
): void {
  const problems = new FieldProblems();
  for (const [index, { negativePrompt, promptWeighting, inputs }] of tasks.entries()) {
    const wanted = { negative_prompt: negativePrompt, prompt_weighting: promptWeighting, control: inputs?.control };
    for (const [ability, value] of Object.entries(wanted) as [keyof typeof wanted, unknown][])
      if (value && cannot[ability] !== undefined)
        problems.add(
          pointerTo(index, ability),
          undefined,
          `cannot be used with this model. ${cannot[ability].replace(/\.$/, '')}`,
        );
  }
  problems.throwIfAny();
}

/** @throws UnprocessableError `TrainingUnsupported` */
export function assertTrainable({ name, cannot = {} }: InstalledModel): void {
  const { training } = cannot;
  if (training === undefined) return;
  const message = `cannot be trained here. ${training.replace(/\.$/, '')}`;
  throw new UnprocessableError('TrainingUnsupported', `The model "${name}" ${message}.`, [
    { pointer: '/model', message },
  ]);
}

/** @param pointers to the fields with pictures. @throws UnprocessableError `PictureUnsupported` */
export function assertReadsPictures({ name, hasEncoder }: InstalledModel, pointers: readonly string[]): void {
  if (hasEncoder) return;
  throw new UnprocessableError(
    'PictureUnsupported',
    `The model "${name}" cannot read a picture: it has no encoder.`,
    pointers.map((pointer) => ({ pointer, message: 'cannot be used with this model, which has no encoder' })),
  );
}

function assertScheduler(model: InstalledModel, scheduler: Asked['scheduler']): void {
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
    scheduler && [{ pointer: '/scheduler', message }],
  );
}
