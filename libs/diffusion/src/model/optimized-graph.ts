import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { env, InferenceSession } from 'onnxruntime-node';
import type { Provider } from './device';
import type { GraphFile } from './graph-file';

/** Opens a graph with the given options. */
export type CreateSession = (options: InferenceSession.SessionOptions) => Promise<InferenceSession>;

/**
 * Opens the optimised form of a graph from a cache folder, or creates it there. An entry is valid for one graph and execution provider, one
 * state of its files, one version of ONNX Runtime and one kind of processor; it is made again when it is not valid or fails to
 * load.
 * @param create opens the graph itself
 */
export async function openOptimized(
  graph: GraphFile,
  folder: string,
  provider: Provider,
  options: InferenceSession.SessionOptions,
  create: CreateSession,
): Promise<InferenceSession> {
  const name = digest(await realpath(graph.path), provider);
  const entry = join(folder, `${name}-${await stateOf(graph)}`);
  const file = join(entry, 'model.onnx');
  if (existsSync(file)) {
    try {
      return await InferenceSession.create(file, { ...options, graphOptimizationLevel: 'disabled' });
    } catch {
      await rm(entry, { recursive: true, force: true });
    }
  }
  let part: string | undefined;
  let session: InferenceSession;
  try {
    await mkdir(folder, { recursive: true });
    part = await mkdtemp(`${entry}.part-`);
    session = await create(writingTo(part, options));
  } catch {
    // A full or read-only disk must not keep a model from loading; if the graph itself is at fault, opening it fails too.
    if (part) await rm(part, { recursive: true, force: true });
    return create(options);
  }
  await publish(part, entry, name).catch(() => rm(part, { recursive: true, force: true }));
  return session;
}

/** Renames a complete entry into place and deletes those of earlier states of the graph. */
async function publish(part: string, entry: string, name: string): Promise<void> {
  const folder = dirname(entry);
  const isFormer = (other: string) => other.startsWith(`${name}-`) && !other.includes('.part-');
  const former = (await readdir(folder)).filter(isFormer);
  await Promise.all(former.map((other) => rm(join(folder, other), { recursive: true, force: true })));
  await rename(part, entry);
}

function writingTo(folder: string, options: InferenceSession.SessionOptions): InferenceSession.SessionOptions {
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
      },
    },
  };
}

async function stateOf({ path, externalFiles, hasScalarTimestep }: GraphFile): Promise<string> {
  const files = [path, ...externalFiles.map((name) => join(dirname(path), name))];
  const states = await Promise.all(files.map(async (file) => stat(file).then(({ size, mtimeMs }) => [size, mtimeMs])));
  const rewritten = hasScalarTimestep ? ['timestep per row'] : [];
  return digest(env.versions.node, process.arch, cpus()[0]?.model, states, ...rewritten);
}

function digest(...values: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}
