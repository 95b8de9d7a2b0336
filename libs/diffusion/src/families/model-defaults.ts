import { join } from 'node:path';
import { type SchedulerName, schedulerNames } from '../schedulers';
import type { PredictionType } from '../schedulers/scheduler-config';
import { allOf, cures } from '../errors';
import { isInteger, isOneOf, problemsOfTraining, type TrainingDefaults } from './training-defaults';
import { readJsonFile } from '../weights/folder-files';

/** Values of a model's `darkroom.json`; absent values are those of the service, or of the model's own files. */
export interface ModelDefaults {
  /** Denoising steps where a request does not say: a distilled model wants few. */
  steps?: number;
  /** Guidance scale where a request does not say; 1 is none. */
  cfg?: number;
  /** Where a request does not say. */
  scheduler?: SchedulerName;
  /** Which layer of the text encoder counts, from the end: 1 is the last, 2 the one before. */
  clip_skip?: number;
  /** Edge in pixels of square pictures. */
  size?: number;
  /** Pixels of a picture at most; four times those of its square where it does not say. */
  max_pixels?: number;
  /** Kind of the denoiser's prediction, where its weights do not tell. */
  prediction_type?: PredictionType;
  training?: TrainingDefaults;
  /** Name of the installed model that is trained in its place: of a distilled model, the one that it was made of. */
  train_on?: string;
}

/** The file with a model's defaults, beside its parts. */
export const defaultsFile = 'darkroom.json';

/** Range of what a request may ask for, and so of a default. */
export const defaultsRange = { steps: { min: 1, max: 50 }, cfg: { min: 1, max: 20 } } as const;

/**
 * @throws ModelFolderError if the folder's `darkroom.json` is not what it should be; without one there are no defaults
 */
export async function readModelDefaults(folder: string): Promise<ModelDefaults> {
  const file = join(folder, defaultsFile);
  const json = (await readJsonFile(file, { optional: true, cure: cures.correctOrRemove })) ?? {};
  const faults = problemsOfDefaults(json).map((reason) => ({ file, reason, cure: cures.correctOrRemove }));
  if (faults.length > 0) throw allOf(faults);
  return json;
}

/** Further keys are told once these are gone. */
const unknownKeysTold = 8;

const { steps, cfg } = defaultsRange;
const isName = (value: unknown): boolean => typeof value === 'string' && /^[a-z0-9][a-z0-9._-]{0,63}$/.test(value);
const predictionTypes = ['epsilon', 'sample', 'v_prediction'];

/** Whether a value is accepted, and the end of the sentence if it is not. */
const rules: Record<Exclude<keyof ModelDefaults, 'training'>, [(value: unknown) => boolean, string]> = {
  steps: [isInteger(steps.min, steps.max), `steps that are no integer from ${steps.min} to ${steps.max}`],
  cfg: [
    (value) => typeof value === 'number' && value >= cfg.min && value <= cfg.max,
    `a cfg that is no number from ${cfg.min} to ${cfg.max}`,
  ],
  scheduler: [isOneOf(...schedulerNames), `a scheduler that is none of ${schedulerNames.join(', ')}`],
  clip_skip: [isInteger(1, 12), 'a clip_skip that is no integer from 1 to 12'],
  size: [isInteger(256, 2048, 64), 'a size that is no multiple of 64 from 256 to 2048'],
  max_pixels: [isInteger(256 ** 2, 2048 ** 2), `max_pixels that are no integer from ${256 ** 2} to ${2048 ** 2}`],
  prediction_type: [isOneOf(...predictionTypes), `a prediction_type that is none of ${predictionTypes.join(', ')}`],
  train_on: [isName, 'a train_on that is no name of an installed model'],
};

const keys = Object.keys(rules) as (keyof typeof rules)[];
const allKeys = [...keys, 'training'];

/** Faults of defaults, each as the end of a sentence. */
export function problemsOfDefaults(json: Readonly<Record<string, unknown>>): string[] {
  const unknown = Object.keys(json)
    .filter((key) => !allKeys.includes(key))
    .slice(0, unknownKeysTold)
    .map((key) => `"${key.slice(0, 60)}"`);
  const known = `${allKeys.slice(0, -1).join(', ')} and ${allKeys.at(-1)}`;
  const problems = unknown.length > 0 ? [`has ${unknown.join(', ')}, and only ${known} are known`] : [];
  for (const key of keys) {
    const [isRight, sentence] = rules[key];
    if (json[key] !== undefined && !isRight(json[key])) problems.push(`has ${sentence}`);
  }
  return [...problems, ...problemsOfTraining(json.training)];
}
