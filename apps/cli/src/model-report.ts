import { ControlNet, OutOfMemoryError, Pipeline, SafetyChecker } from '@app/diffusion';
import { cures, findControlFolder, findSafetyFolder } from '@app/diffusion/files';
import {
  type InstalledModel,
  problemOfKind,
  problemOfOwnScheduler,
  shortHash,
  type VerifyReport,
  withFaults,
} from '@app/model-store';

/** The `problem` of `GET /v1/models`, as far as it can be told without the workers. */
export function modelProblem(model: InstalledModel): string | undefined {
  return model.problem ?? problemOfOwnScheduler(model);
}

/** An installed model as JSON: named as the API names it, with null for what it has not. */
export function modelFacts(model: InstalledModel) {
  const { schedulerProblems } = model;
  return {
    name: model.name,
    family: model.family ?? null,
    kind: model.kind ?? null,
    native_size: model.nativeSize ?? null,
    precision: model.precision ?? null,
    folder: model.folder,
    hash: model.hash ?? null,
    bytes: model.bytes,
    source: model.source ?? null,
    added_at: model.addedAt,
    scheduler: model.scheduler ?? null,
    defaults: model.defaults,
    scheduler_problems: { own: schedulerProblems.own ?? null, named: schedulerProblems.named },
    problem: modelProblem(model) ?? null,
  };
}

/** Remarks about a model that was installed, a sentence each: distilled models and others differ in steps and cfg. */
export function notesOn(model: InstalledModel): string[] {
  const { familyTitle, defaults } = model;
  const usual =
    defaults.steps !== undefined && defaults.cfg !== undefined
      ? `It is taken as ${familyTitle} that draws in ${defaults.steps} steps with a cfg of ${defaults.cfg}.`
      : undefined;
  const notes = [usual, problemOfKind(model), problemOfOwnScheduler(model)];
  return notes.filter((note) => note !== undefined);
}

/**
 * Loads a model on this machine's processor, calls each of its parts once, and unloads it.
 * @returns undefined, or in one sentence why it could not be tried, which says nothing about the model
 * @throws ModelFolderError if it cannot draw
 */
export async function tryModel(folder: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const options = { device: 'cpu', spinUs: 0, signal } as const;
    const control = await findControlFolder(folder);
    const safety = control ? undefined : await findSafetyFolder(folder);
    if (control) await ControlNet.tryOut(control, options);
    else if (safety) await SafetyChecker.tryOut(safety, options);
    else await (await Pipeline.load(folder, options)).release();
    return undefined;
  } catch (error) {
    if (error instanceof OutOfMemoryError)
      return 'It was not tried, because this machine has too little memory for it.';
    throw error;
  }
}

/** What became of the files of a model, as a sentence. */
export function verdict({ name, recorded, hash, differences, problem }: VerifyReport): string {
  const files = differences.map(({ path, reason }) => `${path} is ${reason}`).join(', ');
  if (files !== '') return `${name}: ${files}. ${cures.installAgain}`;
  if (problem !== undefined) return withFaults(`${name}:`, problem);
  const known = recorded
    ? 'as installed'
    : 'readable; it was not installed by "add", so there is nothing to compare it with';
  return `${name}: ${known}, hash ${shortHash(hash!)}.`;
}
