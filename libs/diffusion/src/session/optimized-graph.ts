import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rename, rm, stat } from 'node:fs/promises';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { env } from 'onnxruntime-node';
import type { InferenceSession } from 'onnxruntime-node';
import { InferenceSession as Session } from 'onnxruntime-node';
import type { GraphFile } from './graph-file';

/**
 * Opens the optimised form of a graph from a cache folder, or makes it there. An entry belongs to one state of the model's files,
 * one version of ONNX Runtime, one device and one kind of processor; an entry that fails to load is made anew.
 * @param create opens the graph itself
 */
export async function openOptimized(
  graph: GraphFile,
  folder: string,
  device: string,
  options: InferenceSession.SessionOptions,
  create: (options: InferenceSession.SessionOptions) => Promise<InferenceSession>,
): Promise<InferenceSession> {
  const entry = join(folder, await cacheKey(graph, device));
  const file = join(entry, 'model.onnx');
  if (existsSync(file)) {
    try {
      return await Session.create(file, { ...options, graphOptimizationLevel: 'disabled' });
    } catch {
      await rm(entry, { recursive: true, force: true });
    }
  }
  await mkdir(folder, { recursive: true });
  const part = await mkdtemp(`${entry}.part-`);
  try {
    const session = await create({
      ...options,
      optimizedModelFilePath: join(part, 'model.onnx'),
      extra: mergeSession(options.extra, {
        // Weights go to a file of their own: a graph may not exceed 2 GB.
        optimized_model_external_initializers_file_name: 'weights.bin',
        optimized_model_external_initializers_min_size_in_bytes: '1024',
      }),
    });
    // Another process may have made the same entry first; then ours is dropped.
    await rename(part, entry).catch(() => rm(part, { recursive: true, force: true }));
    return session;
  } catch {
    // The cache may be full or read-only, or the graph wrong: opening it without a cache tells.
    await rm(part, { recursive: true, force: true });
    return create(options);
  }
}

async function cacheKey({ path, externalFiles }: GraphFile, device: string): Promise<string> {
  const hash = createHash('sha256').update(
    JSON.stringify([env.versions.node, device, process.arch, cpus()[0]?.model ?? '', await realpath(path)]),
  );
  for (const name of [path, ...externalFiles.map((file) => join(dirname(path), file))]) {
    const { size, mtimeMs } = await stat(name);
    hash.update(JSON.stringify([name === path ? '' : name, size, mtimeMs]));
  }
  return hash.digest('hex').slice(0, 32);
}

function mergeSession(extra: Record<string, unknown> | undefined, session: Record<string, unknown>) {
  return { ...extra, session: { ...(extra?.session as object), ...session } };
}
