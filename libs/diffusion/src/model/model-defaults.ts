import { join } from 'node:path';
import { type SchedulerName, schedulerNames } from '../schedulers';
import { allOf, cures } from '../errors';
import { readJsonFile } from './model-files';

/** What a model is drawn with where a request does not say; absent values are the service's. */
export interface ModelDefaults {
  /** Denoising steps: a distilled model wants few. */
  steps?: number;
  /** Guidance scale; 1 is none. */
  cfg?: number;
  scheduler?: SchedulerName;
}

/** The file with a model's defaults, beside its parts. */
export const defaultsFile = 'darkroom.json';

/** What a request may ask for, and so what a default may be. */
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

/** What is wrong with defaults, each fault as the end of a sentence. */
export function problemsOfDefaults(json: Readonly<Record<string, unknown>>): string[] {
  const { steps, cfg, scheduler, ...others } = json;
  const unknown = Object.keys(others)
    .slice(0, unknownKeysTold)
    .map((key) => `"${key.slice(0, 60)}"`);
  const isWithin = (value: unknown, { min, max }: { min: number; max: number }) =>
    typeof value === 'number' && value >= min && value <= max;
  const { steps: ofSteps, cfg: ofCfg } = defaultsRange;
  const problems: string[] = [];
  if (unknown.length > 0) problems.push(`has ${unknown.join(', ')}, and only steps, cfg and scheduler are known`);
  if (steps !== undefined && !(Number.isInteger(steps) && isWithin(steps, ofSteps)))
    problems.push(`has steps that are no integer from ${ofSteps.min} to ${ofSteps.max}`);
  if (cfg !== undefined && !isWithin(cfg, ofCfg))
    problems.push(`has a cfg that is no number from ${ofCfg.min} to ${ofCfg.max}`);
  if (scheduler !== undefined && !schedulerNames.includes(scheduler as SchedulerName))
    problems.push(`has a scheduler that is none of ${schedulerNames.join(', ')}`);
  return problems;
}
