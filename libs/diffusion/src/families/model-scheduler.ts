import { join } from 'node:path';
import { createScheduler, type SchedulerName, schedulerNames, schedulerNamesFor } from '../schedulers';
import { alphasCumprod } from '../schedulers/noise-schedule';
import {
  isOfFlow,
  parseSchedulerJson,
  readSchedulerConfig,
  SchedulerError,
  type SchedulerJson,
} from '../schedulers/scheduler-config';
import { cures, ModelFolderError } from '../errors';
import type { Family } from './family';
import { readOptionalFile } from '../weights/folder-files';

const fileOf = (folder: string): string => join(folder, 'scheduler', 'scheduler_config.json');

/**
 * A model's scheduler: what its `scheduler_config.json` says, else that of its family, with the training parameters
 * that every scheduler needs checked. Whether it can draw is left open, because requests may name another.
 * @param known values that count more
 * @throws ModelFolderError if no scheduler can draw with it
 */
export async function readModelScheduler(
  folder: string,
  { usual, fixed }: Family['scheduler'],
  known: SchedulerJson = {},
): Promise<SchedulerJson> {
  const file = fileOf(folder);
  const text = await readOptionalFile(file);
  try {
    const own = text === undefined ? usual : { ...parseSchedulerJson(text), ...fixed };
    const json = { ...own, ...known };
    if (isOfFlow(usual) && !isOfFlow(json))
      throw new SchedulerError(`${String(json._class_name)} is not for flow matching.`);
    // The transformers are told times in thousandths of it, as in the pipelines of diffusers.
    if (isOfFlow(usual) && (json.num_train_timesteps ?? 1000) !== 1000)
      throw new SchedulerError(`num_train_timesteps must be 1000, but is ${JSON.stringify(json.num_train_timesteps)}.`);
    if (!isOfFlow(json)) alphasCumprod(readSchedulerConfig(json, { rescale_betas_zero_snr: false }));
    return json;
  } catch (error) {
    if (!(error instanceof SchedulerError)) throw error;
    throw new ModelFolderError(file, `cannot be used: ${error.message.replace(/\.$/, '')}`, cures.correct);
  }
}

/** Why schedulers cannot draw with a model's configuration, a sentence each; those that can are left out. */
export interface SchedulerProblems {
  /** Of the model's own scheduler. */
  own?: string;
  /** Of the schedulers that a request can name. */
  named: Partial<Record<SchedulerName, string>>;
}

/** @throws ModelFolderError if there is none that can draw */
export function problemsOfSchedulers({
  path,
  schedulerJson: json,
}: {
  path: string;
  schedulerJson: SchedulerJson;
}): SchedulerProblems {
  const own = problemOf(undefined, json);
  const named: SchedulerProblems['named'] = {};
  const fitting = new Set(schedulerNamesFor(json));
  for (const name of schedulerNames) {
    const problem = fitting.has(name) ? problemOf(name, json) : 'It does not draw by flow matching.';
    if (problem !== undefined) named[name] = problem;
  }
  if (own !== undefined && Object.keys(named).length === schedulerNames.length)
    throw new ModelFolderError(fileOf(path), `cannot be used: ${own.replace(/\.$/, '')}`, cures.correct);
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
