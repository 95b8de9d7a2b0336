import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { env, InferenceSession } from 'onnxruntime-node';
import type { Provider } from './device';
import type { GraphFile } from './graph-file';
import { processorKind } from './processor-kind';
import { isUnfinished, partMark, removeAbandoned } from './unfinished-folder';

/** Opens a graph with the given options. */
export type CreateSession = (options: InferenceSession.SessionOptions) => Promise<InferenceSession>;

/** What an entry was made from; kept in it, so that it can be deleted when that is gone. */
interface Origin {
  path: string;
  externalFiles: string[];
  /** State of these files when the entry was made. */
  state: string;
}

/** Holds the `Origin` of an entry; its modification time is the entry's last use. */
const ORIGIN = 'origin.json';
/** An entry that was not used for so long is deleted: it may be of another version of ONNX Runtime, or of another processor. */
const unusedMs = 30 * 24 * 60 * 60 * 1000;

/**
 * Opens the optimised form of a graph from a cache folder, or creates it there. An entry is valid for one execution provider, one
 * state of the graph's files, under whatever name they are linked, one version of ONNX Runtime and one kind of processor; it is made
 * again when it fails to load.
 * @param create opens the graph itself
 */
export async function openOptimized(
  graph: GraphFile,
  folder: string,
  provider: Provider,
  options: InferenceSession.SessionOptions,
  create: CreateSession,
): Promise<InferenceSession> {
  const origin = await originOf(graph);
  const runtime = [env.versions.node, await processorKind(), 'prepacked'];
  const entry = join(folder, digest(provider, identityOf(graph, origin), ...runtime));
  const file = join(entry, 'model.onnx');
  if (existsSync(file)) {
    try {
      const session = await InferenceSession.create(file, { ...options, graphOptimizationLevel: 'disabled' });
      await writeOrigin(entry, origin).catch(() => undefined);
      return session;
    } catch {
      await rm(entry, { recursive: true, force: true });
    }
  }
  let part: string | undefined;
  let session: InferenceSession;
  try {
    await mkdir(folder, { recursive: true });
    part = await mkdtemp(`${entry}${partMark}`);
    session = await create(writingTo(part, provider, options));
    await writeOrigin(part, origin);
  } catch {
    // A full or read-only disk must not keep a model from loading; if the graph itself is at fault, opening it fails too.
    if (part) await rm(part, { recursive: true, force: true });
    return create(options);
  }
  await rename(part, entry).catch(() => rm(part, { recursive: true, force: true }));
  await prune(folder).catch(() => undefined);
  return session;
}

/** Equal for graphs that compute the same: for one state of the same files, under whatever name they are linked. */
export async function graphIdentity(graph: GraphFile): Promise<string> {
  return identityOf(graph, await originOf(graph));
}

function identityOf({ hasScalarTimestep }: GraphFile, { state }: Origin): string {
  return digest(state, hasScalarTimestep);
}

/** Deletes entries whose graphs are gone or have changed, those that nobody used for long, and what a process that died has left. */
async function prune(folder: string): Promise<void> {
  await removeAbandoned(folder);
  for (const name of await readdir(folder)) {
    if (isUnfinished(name)) continue;
    const entry = join(folder, name);
    const found = await stat(join(entry, ORIGIN)).catch(() => undefined);
    const age = Date.now() - (found?.mtimeMs ?? 0);
    const isStale = age > unusedMs || !(await hasOrigin(entry));
    if (isStale) await rm(entry, { recursive: true, force: true });
  }
}

async function hasOrigin(entry: string): Promise<boolean> {
  try {
    const origin = JSON.parse(await readFile(join(entry, ORIGIN), 'utf8')) as Origin;
    return (await originOf(origin)).state === origin.state;
  } catch {
    return false;
  }
}

/** Linked files have one state, so that a Fine-Tune's unchanged parts are those of its base. */
async function originOf({ path, externalFiles }: Pick<GraphFile, 'path' | 'externalFiles'>): Promise<Origin> {
  const files = [path, ...externalFiles.map((name) => join(dirname(path), name))];
  const states = await Promise.all(
    files.map(async (file) => stat(file).then(({ ino, size, mtimeMs }) => [ino, size, mtimeMs])),
  );
  return { path: await realpath(path), externalFiles: [...externalFiles], state: digest(states) };
}

async function writeOrigin(entry: string, origin: Origin): Promise<void> {
  await writeFile(join(entry, ORIGIN), JSON.stringify(origin));
}

function writingTo(
  folder: string,
  provider: Provider,
  options: InferenceSession.SessionOptions,
): InferenceSession.SessionOptions {
  return {
    ...options,
    optimizedModelFilePath: join(folder, 'model.onnx'),
    extra: {
      ...options.extra,
      session: {
        ...(options.extra?.session as object),
        // Weights go to a separate file, because a graph may not exceed 2 GB.
        optimized_model_external_initializers_file_name: 'weights.bin',
        optimized_model_external_initializers_min_size_in_bytes: '1024',
        // As the processor's kernels arrange them, so that loading need not: a quarter more disk for a quarter less time.
        ...(provider === 'cpu' && { save_external_prepacked_constant_initializers: '1' }),
      },
    },
  };
}

function digest(...values: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}
