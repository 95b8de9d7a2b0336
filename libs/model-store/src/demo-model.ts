import type { InstalledModel, ModelStore } from './model-store';

/** The bundled demonstration model. */
export const demoModel = 'shapes';

/** The models that it may stand in for if they are not installed and the operator allows it. */
const replaceable: readonly string[] = ['sd1.5', 'sd2.1'];

/** The names that it stands in for among the installed models: none if it cannot be drawn with itself. */
export function replacedByDemo(installed: readonly { name: string; hash?: string | undefined }[]): string[] {
  if (installed.find(({ name }) => name === demoModel)?.hash === undefined) return [];
  return replaceable.filter((other) => !installed.some(({ name }) => name === other));
}

/**
 * The model that draws for `name`: itself, or the demonstration model in its place.
 * @param mayReplace whether the operator allows that.
 */
export async function findServing(
  store: Pick<ModelStore, 'find'>,
  name: string,
  mayReplace: boolean,
): Promise<InstalledModel | undefined> {
  const own = await store.find(name);
  return own ?? (mayReplace && replaceable.includes(name) ? store.find(demoModel) : undefined);
}
