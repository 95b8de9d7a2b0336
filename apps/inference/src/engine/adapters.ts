import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type AdapterUse,
  fitAdapter,
  type FittedAdapter,
  loadAdapter,
  type LoadedAdapter,
  type MergedUse,
  type ModelFolder,
  readAdapter,
  writeMerged,
} from '@app/diffusion';
import type { AdapterSource, ModelSource } from './engine-protocol';

/** Limit of the cache in bytes. Tasks keep the adapters that they use, also once these are evicted and not counted. */
const maxCachedBytes = 256 * 2 ** 20;
/** Bytes that each adapter counts for at the least: one that changes the model's weights takes little memory itself. */
const minCountedBytes = 2 ** 20;
/** Milliseconds after which a file of changed weights counts as left behind by a crash. */
const staleAfterMs = 24 * 3_600_000;

interface ReadAdapter {
  fitted: FittedAdapter;
  loaded: LoadedAdapter;
}

/** A model together with the adapters of a task. */
export interface AdaptedModel {
  /** Key of the model to load; tasks with the same key are drawn with the same loaded model. */
  modelKey: string;
  /** The same of what encodes its texts: that of the model itself, unless adapters change weights of a text encoder. */
  textsKey: string;
  uses: readonly AdapterUse[];
  /** Writes the changed weights of the model, if adapters are not of low rank. Resolves with the file's path. */
  mergedWeights?: (() => Promise<string>) | undefined;
}

/**
 * The adapters of a device. An adapter of low rank is an input of the denoiser, so one loaded model draws with any
 * number of them; they are cached, and the least recently used are evicted. Adapters that are not of low rank change
 * weights of the model, which is then loaded a second time, with these from a temporary file.
 */
export class Adapters {
  /** Adapters by the model's key and the file's hash, the least recently used first. */
  private readonly cache = new Map<string, { adapter: Promise<ReadAdapter>; bytes: number }>();
  /** Temporary files of changed weights, by the key of the model to load with them. */
  private readonly mergedFiles = new Map<string, Promise<string>>();
  private readonly folder: string;

  constructor(cacheDir: string) {
    this.folder = join(cacheDir, 'changed-weights');
    this.removeLeftovers().catch(() => undefined);
  }

  get bytes(): number {
    return [...this.cache.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * Reads the adapters of a task.
   * @throws WeightsError if a file is no adapter of this model
   */
  async adapt(
    { key }: ModelSource,
    { tensors, conditioner }: Pick<ModelFolder, 'tensors' | 'conditioner'>,
    sources: readonly AdapterSource[],
  ): Promise<AdaptedModel> {
    const uses: AdapterUse[] = [];
    const merges: MergedUse[] = [];
    let [modelKey, textsKey] = [key, key];
    for (const { kind, hash, file, scale, token } of sources) {
      const { fitted, loaded } = await this.read(`${key} ${hash}`, file, tensors);
      uses.push({ adapter: loaded, scale, ...(kind === 'textual_inversion' && { token }) });
      if (fitted.merged.size === 0 || scale === 0) continue;
      merges.push({ adapter: fitted, scale });
      const merge = `+${kind}:${hash}:${scale}`;
      modelKey += merge;
      if (conditioner.encoders.some(({ part }) => fitted.merged.has(part))) textsKey += merge;
    }
    if (merges.length === 0) return { modelKey, textsKey, uses };
    return { modelKey, textsKey, uses, mergedWeights: () => this.write(modelKey, merges) };
  }

  /** Deletes the temporary file of this key. No waiting task may need it any more. */
  discard(key: string): void {
    const file = this.mergedFiles.get(key);
    this.mergedFiles.delete(key);
    file?.then((path) => rm(path, { force: true })).catch(() => undefined);
  }

  private async read(id: string, file: string, tensors: ModelFolder['tensors']): Promise<ReadAdapter> {
    const cached = this.cache.get(id) ?? { adapter: readFitted(file, tensors), bytes: 0 };
    this.cache.delete(id);
    this.cache.set(id, cached);
    try {
      const adapter = await cached.adapter;
      cached.bytes = Math.max(minCountedBytes, adapter.loaded.bytes);
      this.evict();
      return adapter;
    } catch (error) {
      this.cache.delete(id);
      throw error;
    }
  }

  private evict(): void {
    for (const [oldest] of this.cache) {
      if (this.bytes <= maxCachedBytes || this.cache.size === 1) return;
      this.cache.delete(oldest);
    }
  }

  private write(key: string, merges: readonly MergedUse[]): Promise<string> {
    const write = async (): Promise<string> => {
      const file = join(this.folder, `${randomUUID()}.safetensors`);
      try {
        await mkdir(this.folder, { recursive: true });
        await writeMerged(merges, file);
        return file;
      } catch (error) {
        this.mergedFiles.delete(key);
        await rm(file, { force: true });
        throw error;
      }
    };
    const file = this.mergedFiles.get(key) ?? write();
    this.mergedFiles.set(key, file);
    return file;
  }

  private async removeLeftovers(): Promise<void> {
    for (const name of await readdir(this.folder)) {
      const file = join(this.folder, name);
      if (Date.now() - (await stat(file)).mtimeMs > staleAfterMs) await rm(file, { force: true });
    }
  }
}

async function readFitted(file: string, tensors: ModelFolder['tensors']): Promise<ReadAdapter> {
  const fitted = fitAdapter(await readAdapter(file), tensors);
  return { fitted, loaded: await loadAdapter(fitted) };
}
