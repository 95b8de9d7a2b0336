import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { withTimestepPerRow, withUniqueNodeNames } from '../onnx/edited-graph';
import type { GraphFile } from './graph-file';
import type { CreateSession } from './optimized-graph';
import { placeCopy, shareFile } from './shared-files';
import { mendedPrefix, removeUnfinished } from './cache-entry';

/**
 * Loads a graph by its path, so that its external weights are found and never read into our memory, where more than 2
 * GiB of them do not fit. A graph that must be changed, or whose weights are behind links, is placed in a
 * folder of its own for that moment, mended, with its weights as hard links.
 * @param cacheDir where that folder is made if it can be: best on the model's device, because links
 * do not lead to another
 */
export function graphLoader(graph: GraphFile, cacheDir: string | undefined): CreateSession {
  const { path, externalFiles, hasRepeatedNames, hasScalarTimestep, linksOutside } = graph;
  if (!hasRepeatedNames && !hasScalarTimestep && !linksOutside)
    return (options) => InferenceSession.create(path, options);
  return async (options) => {
    const mended = await mendedGraph(graph);
    if (externalFiles.length === 0) return InferenceSession.create(mended, options);
    const folder = await temporaryFolder(cacheDir);
    try {
      await writeFile(join(folder, 'model.onnx'), mended);
      for (const name of externalFiles) await shareFile(join(dirname(path), name), join(folder, name), placeCopy);
      return await InferenceSession.create(join(folder, 'model.onnx'), options);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

async function mendedGraph({ path, hasRepeatedNames, hasScalarTimestep }: GraphFile): Promise<Buffer<ArrayBuffer>> {
  const bytes = await readFile(path);
  const named = hasRepeatedNames ? withUniqueNodeNames(bytes) : bytes;
  return hasScalarTimestep ? withTimestepPerRow(named) : named;
}

async function temporaryFolder(cacheDir: string | undefined): Promise<string> {
  const inTemporary = () => mkdtemp(join(tmpdir(), mendedPrefix));
  if (cacheDir === undefined) return inTemporary();
  try {
    await mkdir(cacheDir, { recursive: true });
    await removeUnfinished(cacheDir);
    return await mkdtemp(join(cacheDir, mendedPrefix));
  } catch {
    return inTemporary();
  }
}

interface Shared {
  session: Promise<InferenceSession>;
  users: number;
}

/**
 * Sessions of one device that several models use: a Fine-Tune changes some parts of its base, and has the others in
 * common with it. A session is released with the last model that uses it.
 */
export class SharedSessions {
  private readonly sessions = new Map<string, Shared>();

  /** @param key equal for graphs that compute the same @param load opens the graph, if no one uses it yet */
  async open(
    key: string,
    load: () => Promise<InferenceSession>,
  ): Promise<{ session: InferenceSession; release(): Promise<void> }> {
    const shared = this.sessions.get(key) ?? { session: load(), users: 0 };
    this.sessions.set(key, shared);
    shared.users++;
    let isReleased = false;
    const release = async (): Promise<void> => {
      if (isReleased) return;
      isReleased = true;
      if (--shared.users > 0) return;
      this.sessions.delete(key);
      await (await shared.session).release();
    };
    try {
      return { session: await shared.session, release };
    } catch (error) {
      isReleased = true;
      shared.users--;
      if (this.sessions.get(key) === shared) this.sessions.delete(key);
      throw error;
    }
  }
}
