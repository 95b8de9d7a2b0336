import { join } from 'node:path';
import { createScheduler, type SchedulerName, schedulerNames, stableDiffusionConfig } from '../schedulers';
import { alphasCumprod } from '../schedulers/noise-schedule';
import {
  parseSchedulerJson,
  readSchedulerConfig,
  SchedulerError,
  type SchedulerJson,
} from '../schedulers/scheduler-config';
import { cures, ModelFolderError } from '../errors';
import { readTextFile } from './model-files';

const fileOf = (folder: string): string => join(folder, 'scheduler', 'scheduler_config.json');

/**
 * A folder's `scheduler_config.json`, with the training parameters that every scheduler needs checked. Whether the
 * model's own scheduler can draw is left open, because requests may name another.
 * @throws ModelFolderError if it is missing, or no scheduler can draw with it
 */
export async function readModelScheduler(folder: string): Promise<SchedulerJson> {
  const file = fileOf(folder);
  const text = await readTextFile(file);
  try {
    const json = stableDiffusionConfig(parseSchedulerJson(text));
    alphasCumprod(readSchedulerConfig(json, { rescale_betas_zero_snr: false }));
    return json;
  } catch (error) {
    if (!(error instanceof SchedulerError)) throw error;
    throw new ModelFolderError(file, `cannot be used: ${error.message.replace(/\.$/, '')}`, cures.correct);
  }
}

/** Why schedulers cannot draw with a model's configuration, a sentence each; those that can are left out. */
export interface SchedulerProblems {
  /** Of the model's own. */
  own?: string;
  /** Of those that a request can name. */
  named: Partial<Record<SchedulerName, string>>;
}

/** @throws ModelFolderError as {@link readModelScheduler} */
export async function problemsOfSchedulers(folder: string): Promise<SchedulerProblems> {
  const json = await readModelScheduler(folder);
  const own = problemOf(undefined, json);
  const named: SchedulerProblems['named'] = {};
  for (const name of schedulerNames) {
    const problem = problemOf(name, json);
    if (problem !== undefined) named[name] = problem;
  }
  if (own !== undefined && Object.keys(named).length === schedulerNames.length)
    throw new ModelFolderError(fileOf(folder), `cannot be used: ${own.replace(/\.$/, '')}`, cures.correct);
  return { ...(own !== undefined && { own }), named };
}

function problemOf(name: SchedulerName | undefined, json: SchedulerJson): string | undefined {
  try {
    createScheduler(name, json);
    return undefined;
  } catch (error) {
    if (error instanceof SchedulerError) return error.message;
    throw error;
  }
}
