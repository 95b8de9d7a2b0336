import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { env, InferenceSession } from 'onnxruntime-node';
import {
  hasOrigin,
  isUnfinished,
  isWhole,
  lastUse,
  noteUse,
  partMark,
  removeUnfinished,
  sealEntry,
} from './cache-entry';
import type { Provider } from './device';
import type { GraphFile } from './graph-file';
import { digest, graphIdentity, type GraphOrigin, originOf } from './graph-identity';
import { cpus } from 'node:os';

/** Opens a graph with the given options. */
export type CreateSession = (options: InferenceSession.SessionOptions) => Promise<InferenceSession>;

/** An entry that was not used for 30 days is deleted: it may be of another version of ONNX Runtime or processor. */
const unusedMs = 30 * 24 * 60 * 60 * 1000;

/**
 * Opens the optimised form of a graph from a cache folder, or creates it there. An entry is valid for one execution
 * provider, one state of the graph's files, under whatever name they are linked, one version of ONNX Runtime and one
 * kind of processor; it is made again when it is damaged.
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
  const entry = join(folder, digest(provider, await graphIdentity(graph, origin), ...runtime));
  const found = existsSync(entry) && (await openEntry(entry, options));
  if (found) {
    await noteUse(entry, origin).catch(() => undefined);
    return found;
  }
  let part: string | undefined;
  let session: InferenceSession;
  try {
    await mkdir(folder, { recursive: true });
    part = await mkdtemp(`${entry}${partMark}`);
    session = await create(writingTo(part, provider, options));
  } catch {
    // A full or read-only disk must not keep a model from loading; if the graph itself is at
    // fault, opening it fails too.
    if (part) await rm(part, { recursive: true, force: true });
    return create(options);
  }
  await keep(part, entry, origin);
  await prune(folder).catch(() => undefined);
  return session;
}

/** Opens a whole entry; one that is damaged is deleted. */
async function openEntry(
  entry: string,
  options: InferenceSession.SessionOptions,
): Promise<InferenceSession | undefined> {
  if (await isWhole(entry))
    // Where a whole one fails to load, memory may be short; it is kept.
    return InferenceSession.create(join(entry, 'model.onnx'), { ...options, graphOptimizationLevel: 'disabled' }).catch(
      () => undefined,
    );
  await rm(entry, { recursive: true, force: true }).catch(() => undefined);
  return undefined;
}

/** Gives an entry its name, unless the disk is full or another engine was faster: the graph is loaded either way. */
async function keep(part: string, entry: string, origin: GraphOrigin): Promise<void> {
  try {
    await sealEntry(part, origin);
    await rename(part, entry);
  } catch {
    await rm(part, { recursive: true, force: true });
  }
}

/**
 * Deletes entries whose graphs are gone or have changed, those that nobody used for long, and what a
 * process that died has left.
 */
async function prune(folder: string): Promise<void> {
  await removeUnfinished(folder);
  for (const name of await readdir(folder)) {
    if (isUnfinished(name)) continue;
    const entry = join(folder, name);
    const age = Date.now() - (await lastUse(entry).catch(() => 0));
    const isStale = age > unusedMs || !(await hasOrigin(entry).catch(() => false));
    if (isStale) await rm(entry, { recursive: true, force: true });
  }
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
        // As the processor's kernels arrange them, so that loading need not: a quarter more disk
        // for a quarter less time.
        ...(provider === 'cpu' && { save_external_prepacked_constant_initializers: '1' }),
      },
    },
  };
}

/**
 * The fields of /proc/cpuinfo by which kernels are chosen: those of x86, of ARM, and of the other processors of Linux.
 */
const fields =
  /^(vendor_id|cpu family|model|model name|stepping|flags|CPU (implementer|architecture|variant|part|revision)|[Ff]eatures|cpu|isa|uarch)$/;

/**
 * Equal for processors on which ONNX Runtime chooses the same kernels, and so arranges weights alike. Virtual
 * machines often have one name for processors with different instructions, so it has the instructions where
 * the system tells them.
 */
async function processorKind(): Promise<string[]> {
  const cpuinfo = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  return [...new Set([process.arch, ...cpus().map(({ model }) => model), ...kindOf(cpuinfo)])];
}

/** What a /proc/cpuinfo says of the kinds of its cores, each line once. */
export function kindOf(cpuinfo: string): string[] {
  const lines = cpuinfo.split('\n').map((line) => line.replace(/\s+/g, ' '));
  return [...new Set(lines.filter((line) => fields.test(line.split(':')[0].trim())))].sort();
}
