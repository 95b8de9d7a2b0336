import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';

/** What C2PA's own library reads. */
interface FoundManifest {
  state: string;
  actions: { action: string; parameters?: Record<string, unknown> }[];
  /** Names of the ingredients. */
  ingredients: string[];
}

/** Reads pictures, whose format their names end with, in a process for all; null: one has no manifest. */
export function manifestsIn(paths: readonly string[]): (FoundManifest | null)[] {
  const reader = resolve('dist', 'libs', 'credentials', 'src', 'c2pa.js');
  const program = `
    const { readManifests } = require(${JSON.stringify(reader)});
    const { readFileSync } = require('node:fs');
    void (async () => {
      for (const path of JSON.parse(readFileSync(0, 'utf8'))) {
        const store = await readManifests(readFileSync(path), 'image/' + path.split('.').at(-1));
        const { assertions = [], ingredients = [] } = store?.manifests[store.active_manifest] ?? {};
        const { actions = [] } = assertions.find(({ label }) => label.startsWith('c2pa.actions'))?.data ?? {};
        const found = { state: store?.validation_state, actions, ingredients: ingredients.map(({ title }) => title) };
        console.log(JSON.stringify(store ? found : null));
      }
    })();`;
  const { stdout } = spawnSync(process.execPath, ['-e', program], { input: JSON.stringify(paths), encoding: 'utf8' });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as FoundManifest | null);
}
