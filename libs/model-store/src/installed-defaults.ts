import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  defaultsFile,
  type ModelDefaults,
  ModelFolderError,
  problemsOfDefaults,
  readModelDefaults,
  schedulerNames,
  vaeFile,
} from '@app/diffusion/files';
import { ModelStoreError } from './model-store-error';
import { drawsPictures } from './model-layout';
import type { InstalledModel } from './model-store';

/** @throws ModelStoreError `InvalidDefaults` naming each value and what is accepted */
export function checkDefaults(defaults: ModelDefaults | undefined): void {
  const problems = problemsOfDefaults({ ...defaults });
  if (problems.length > 0)
    throw new ModelStoreError('InvalidDefaults', `What was given ${problems.join(', and it ')}.`);
}

/** The refusal of a model because of its `darkroom.json`, as one of the values that were given; undefined for another. */
export function refusalOfDefaults(error: unknown): ModelStoreError | undefined {
  const faults = faultsOf(error).filter(({ file }) => basename(file) === defaultsFile);
  if (faults.length === 0) return undefined;
  const reasons = faults.map(({ reason }) => reason);
  return new ModelStoreError('InvalidDefaults', `What was given ${reasons.join(', and it ')}.`, {
    cause: (error as Error).cause,
  });
}

/** Whether a model is refused for nothing but what was given beside its source. */
export function isOfOptions(error: unknown): boolean {
  const faults = faultsOf(error);
  return faults.length > 0 && faults.every(({ file }) => [defaultsFile, vaeFile].includes(basename(file)));
}

function faultsOf(error: unknown): readonly Pick<ModelFolderError, 'file' | 'reason'>[] {
  const { cause } = error as Error;
  return cause instanceof ModelFolderError ? [cause, ...cause.others] : [];
}

/** Writes the given defaults into the folder's `darkroom.json`, over those that it has. */
export async function writeDefaults(folder: string, given: ModelDefaults): Promise<void> {
  const defaults = { ...(await readModelDefaults(folder)), ...given };
  await writeFile(join(folder, defaultsFile), `${JSON.stringify(defaults, undefined, 2)}\n`);
}

/** Names for `scheduler` in a request that a model can be drawn with. */
export function schedulersOf({ schedulerProblems, kind }: Pick<InstalledModel, 'schedulerProblems' | 'kind'>) {
  return !drawsPictures(kind) ? [] : schedulerNames.filter((name) => schedulerProblems.named[name] === undefined);
}

/**
 * Names for `scheduler` in a request to a model, as the end of a sentence: all, or a list of those that can draw.
 */
export function workingSchedulers(model: Pick<InstalledModel, 'schedulerProblems' | 'kind'>): string {
  const working = schedulersOf(model);
  if (working.length === schedulerNames.length) return `any scheduler, such as ${working[0]}`;
  return working.length === 1 ? working[0] : `${working.slice(0, -1).join(', ')} or ${working.at(-1)}`;
}

interface SentPictures {
  image?: unknown;
  mask?: unknown;
}

/** Needs of a request to a model besides its text, as a sentence; undefined if it needs no more, or has it. */
export function problemOfKind({ kind }: Pick<InstalledModel, 'kind'>, sent: SentPictures = {}): string | undefined {
  const [hasImage, hasMask] = [sent.image, sent.mask].map((picture) => (picture ?? undefined) !== undefined);
  if (kind === 'inpainting' && !(hasImage && hasMask))
    return `It draws from a picture (${kind}), so a request needs "image" and "mask".`;
  if (kind === 'instruct-pix2pix' && !hasImage) return `It draws from a picture (${kind}), so a request needs "image".`;
  return undefined;
}

/**
 * Why requests that name no scheduler are refused for a model, and what its operator can do; undefined if they are not.
 */
export function problemOfOwnScheduler(
  model: Pick<InstalledModel, 'schedulerProblems' | 'defaults'>,
): string | undefined {
  const { own } = model.schedulerProblems;
  if (own === undefined || model.defaults.scheduler !== undefined) return undefined;
  return `Its own scheduler cannot draw: ${own} Requests and Prompts that name none are refused; to draw them, set "scheduler" in its darkroom.json to ${workingSchedulers(model)}.`;
}
