import type { InstalledModel, ModelStore } from './model-store';

/**
 * The model that is trained for the Fine-Tunes of a model: itself, or the one that its `darkroom.json` names; or why
 * none can be, as a sentence.
 */
export async function findTrained(
  store: Pick<ModelStore, 'find'>,
  drawn: InstalledModel,
): Promise<InstalledModel | string> {
  const { train_on: name } = drawn.defaults;
  if (name === undefined) return drawn.cannot?.training ?? drawn;
  const found = name === drawn.name ? drawn : await store.find(name);
  const problem = found ? problemOf(found, drawn) : 'is not installed';
  return problem === undefined ? found! : `Its darkroom.json has it trained on "${name}", which ${problem}.`;
}

function problemOf(found: InstalledModel, drawn: InstalledModel): string | undefined {
  if (found.hash === undefined) return `cannot be read: ${found.problem?.replace(/\.$/, '')}`;
  if (found.family !== drawn.family) return `is no model of ${drawn.familyTitle}`;
  if (found.defaults.train_on !== undefined) return 'has a train_on too';
  return found.cannot?.training && `cannot be trained: ${found.cannot.training.replace(/\.$/, '')}`;
}
