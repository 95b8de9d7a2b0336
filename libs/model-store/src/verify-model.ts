import type { ModelCatalog } from './model-catalog';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readLayout } from './model-layout';
import { ModelStoreError } from './model-store-error';
import { contentHash } from './content-hash';
import { hashFiles, type Watched } from './place-files';

interface FileDifference {
  path: string;
  reason: 'missing' | 'changed' | 'added';
}

/** The result of verifying a model. */
export interface VerifyReport {
  name: string;
  /** Content hash of the current files; undefined if they are not a complete model. */
  hash: string | undefined;
  ok: boolean;
  /** False for a folder put there by hand: then only files that changed with the same size and time can be found. */
  recorded: boolean;
  differences: FileDifference[];
  /** Why it cannot be drawn with, a line for each fault. */
  problem?: string;
}

/** Reads every file of a model and compares it with what was installed, or with what was first read. */
export async function verifyModel(
  catalog: ModelCatalog,
  name: string,
  folder: string,
  watched: Watched,
): Promise<VerifyReport> {
  const { installed, seen } = await catalog.manifest(name);
  let problem: string | undefined;
  const layout = await readLayout(folder).catch((error: unknown) => {
    if (!installed || !(error instanceof ModelStoreError)) throw error;
    problem = error.message;
    return undefined;
  });
  const expected = new Map(Object.entries(installed?.files ?? {}));
  const differences: FileDifference[] = [];
  const found = new Set<string>();
  for (const path of new Set([...expected.keys(), ...(layout?.files ?? [])])) {
    const status = await stat(join(folder, path)).catch(() => undefined);
    if (!status?.isFile()) differences.push({ path, reason: 'missing' });
    else found.add(path);
    const before = seen?.files[path];
    if (!installed && before?.sha256 && before.size === status?.size && before.mtimeMs === Math.round(status.mtimeMs))
      expected.set(path, before.sha256);
  }

  const digests = await hashFiles(folder, [...found], watched);
  for (const path of found) {
    if (expected.has(path) && expected.get(path) !== digests.get(path)) differences.push({ path, reason: 'changed' });
    if (installed && !expected.has(path)) differences.push({ path, reason: 'added' });
  }
  if (layout) await catalog.record(name, digests, layout, installed);
  return {
    name,
    hash: layout && contentHash(new Map(layout.files.map((path) => [path, digests.get(path)!]))),
    ok: differences.length === 0 && problem === undefined,
    recorded: installed !== undefined,
    differences: differences.sort((a, b) => (a.path < b.path ? -1 : 1)),
    ...(problem !== undefined && { problem }),
  };
}
