import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sampleOf } from './file-sample';
import type { GraphFile } from './graph-file';

/** The files of a graph at one place, and their state there. */
export interface GraphOrigin {
  /**
   * The real paths of the graph and of its weights: in a hub's cache they lie in another folder than the links to them.
   */
  files: string[];
  /** State of these files; linked files have one state, so that a Fine-Tune's unchanged parts are those of its base. */
  state: string;
}

export async function originOf({ path, externalFiles }: GraphFile): Promise<GraphOrigin> {
  const named = [path, ...externalFiles.map((name) => join(dirname(path), name))];
  const files = await Promise.all(named.map((file) => realpath(file)));
  return { files, state: await stateOf(files) };
}

/** Changes when one of the files is written or replaced. */
export async function stateOf(files: readonly string[]): Promise<string> {
  return digest(
    await Promise.all(files.map((file) => stat(file).then(({ ino, size, mtimeMs }) => [ino, size, mtimeMs]))),
  );
}

/**
 * Equal for graphs that compute the same: for one state of the same files, under whatever name they are linked. The
 * state alone does not tell: on two disk images that were made reproducibly, files of different models may have the
 * same numbers, sizes and times. The number of the device would not do either, for some file systems get another one
 * each time they are mounted.
 */
export async function graphIdentity(graph: GraphFile, origin?: GraphOrigin): Promise<string> {
  const { files, state } = origin ?? (await originOf(graph));
  return digest(state, await Promise.all(files.map((file) => sampleOf(file))), graph.hasScalarTimestep);
}

export function digest(...values: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}
