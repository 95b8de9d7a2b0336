import type { InstalledModel, ModelStore } from './model-store';

/** The safety checker in use: the first by name that can be read; undefined if there is none. */
export async function findSafety(store: Pick<ModelStore, 'list'>): Promise<InstalledModel | undefined> {
  return (await store.list()).find(({ kind, hash }) => kind === 'safety' && hash !== undefined);
}
