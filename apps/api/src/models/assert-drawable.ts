import { UnprocessableError } from '@app/domain';
import { type InstalledModel, problemOfKind, workingSchedulers } from '@app/model-store';

/** What only some families of models can do, as a body asks for it. */
interface Wanted {
  /** 1 is no guidance, which every model draws with. */
  cfg?: number | null | undefined;
  negative_prompt?: string | null | undefined;
  prompt_weighting?: boolean | null | undefined;
  control?: readonly unknown[] | null | undefined;
  references?: readonly unknown[] | null | undefined;
}

interface Asked extends Wanted {
  scheduler?: string | null | undefined;
  image?: string | null | undefined;
  mask?: string | null | undefined;
  /** As a mask, but of what is around `image`. */
  outpaint?: unknown;
  /** JSON pointer to the part of the body that asks. */
  pointer?: string;
}

/**
 * @throws UnprocessableError `ModelTakesNoReferences`, `UnsupportedByModel`, `ModelNeedsPicture`, `PictureUnsupported`,
 * `MaskUnsupported` or `SchedulerUnsupported`, with what the model takes
 */
export function assertDrawable(model: InstalledModel, asked: Asked): void {
  const { scheduler, image, outpaint, pointer = '' } = asked;
  const mask = asked.mask ?? (outpaint ? image : undefined);
  const ofMask = `${pointer}/${asked.mask ? 'mask' : 'outpaint'}`;
  const { name, kind } = model;
  assertAble(model, asked, pointer);
  const problemOfModel = problemOfKind(model, { image, mask });
  if (problemOfModel !== undefined)
    throw new UnprocessableError('ModelNeedsPicture', `The model "${name}" cannot draw this. ${problemOfModel}`, [
      {
        pointer: `${pointer}/${image && kind === 'inpainting' ? 'mask' : 'image'}`,
        message: 'is needed by this model',
      },
    ]);
  if (image) assertReadsPictures(model, [`${pointer}/image`, ...(mask ? [ofMask] : [])]);
  if (mask && kind === 'instruct-pix2pix')
    throw new UnprocessableError('MaskUnsupported', `The model "${name}" changes whole pictures; it takes no mask.`, [
      { pointer: ofMask, message: 'cannot be used with this model' },
    ]);
  assertScheduler(model, scheduler, pointer);
}

/** What a model that cannot does not take, and what to do instead. */
const abilities: Readonly<Record<keyof Wanted, [what: string, instead: string]>> = {
  references: ['references', 'choose another model'],
  cfg: ['guidance', 'draw with a base model'],
  negative_prompt: ['negative prompt', 'draw with a base model'],
  prompt_weighting: ['weights of words', 'choose another model'],
  control: ['ControlNet', 'choose another model'],
};

function assertAble({ name, cannot = {} }: InstalledModel, asked: Asked, pointer: string): void {
  const refused = (Object.keys(abilities) as (keyof Wanted)[]).filter((field) => {
    const value = asked[field];
    const isWanted = Array.isArray(value) ? value.length > 0 : field === 'cfg' ? (value ?? 1) !== 1 : value;
    return cannot[field] !== undefined && isWanted;
  });
  if (refused.length === 0) return;
  const [what, instead] = abilities[refused[0]];
  const reason = cannot[refused[0]]!.replace(/^./, (first) => first.toLowerCase());
  throw new UnprocessableError(
    refused[0] === 'references' ? 'ModelTakesNoReferences' : 'UnsupportedByModel',
    `The model "${name}" takes no ${what}: ${reason} Leave it out, or ${instead}.`,
    refused.map((field) => ({
      pointer: `${pointer}/${field}`,
      message: `cannot be used with this model. ${cannot[field]!.replace(/\.$/, '')}`,
    })),
  );
}

/** @param reason why a model cannot be trained, as a sentence */
export function trainingUnsupported({ name }: InstalledModel, reason: string): UnprocessableError {
  const message = `cannot be trained here. ${reason.replace(/\.$/, '')}`;
  return new UnprocessableError('TrainingUnsupported', `The model "${name}" ${message}.`, [
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

function assertScheduler(model: InstalledModel, scheduler: Asked['scheduler'], pointer: string): void {
  const { own, named } = model.schedulerProblems;
  const name = (scheduler ?? model.defaults.scheduler) as keyof typeof named | undefined;
  const problem = name === undefined ? own : named[name];
  if (problem === undefined) return;
  const which = name === undefined ? 'its own scheduler' : `the scheduler ${name}`;
  const working = workingSchedulers(model);
  const message = name === undefined ? 'is needed for this model' : 'cannot be used with this model';
  throw new UnprocessableError(
    'SchedulerUnsupported',
    `The model "${model.name}" cannot draw with ${which}: ${problem} Name ${working}.`,
    [{ pointer: `${pointer}/scheduler`, message }],
  );
}
