import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type AdapterUse,
  fitAdapter,
  type FittedAdapter,
  loadAdapter,
  type LoadedAdapter,
  type ModelFolder,
  readAdapter,
  RequestError,
  writeMerged,
} from '@app/diffusion';
import type { DrawnModel, FinetuneWeights } from './engine-protocol';

/** Bytes that all adapters may take together. */
const mostBytes = 256 * 2 ** 20;
/** Bytes that an adapter counts for at least: one that changes weights has them in its file, and little in memory. */
const leastBytes = 2 ** 20;
/** Age of a file of changed weights that a crash has left behind. */
const leftAfterMs = 24 * 3_600_000;

/** An adapter as its file was read. */
interface ReadAdapter {
  fitted: FittedAdapter;
  loaded: LoadedAdapter;
}

/** A model with its adapters, as a task is drawn with them. */
export interface AdaptedModel {
  /** Equal for tasks that one loaded model draws. */
  key: string;
  uses: readonly AdapterUse[];
  /** The file of the weights that take the place of the model's, if an adapter is not of low rank. */
  changedWeights?: () => Promise<string>;
}

/**
 * The adapters that a device draws with. One of low rank is an input of its model, so a loaded model serves any number
 * of Fine-Tunes; the least recently used adapters are forgotten when all together take too many bytes. One that is not
 * of low rank changes weights: with it the model is loaded as another one, from a file of these weights that exists
 * until then.
 */
export class Adapters {
  /** In order of use; by the model's key and the file's hash. */
  private readonly kept = new Map<string, { adapter: Promise<ReadAdapter>; bytes: number }>();
  /** Files of changed weights by the key of what is drawn with. */
  private readonly changed = new Map<string, Promise<string>>();
  private readonly folder: string;

  constructor(cacheDir: string) {
    this.folder = join(cacheDir, 'changed-weights');
    this.removeLeftovers().catch(() => undefined);
  }

  /** Bytes of all adapters that are kept. */
  get bytes(): number {
    return [...this.kept.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** @throws WeightsError if a file is no adapter of this model, or its kind cannot be used beside the others */
  async adapt(
    { key }: DrawnModel,
    { tensors }: Pick<ModelFolder, 'tensors'>,
    weights: readonly FinetuneWeights[],
  ): Promise<AdaptedModel> {
    const uses: AdapterUse[] = [];
    let changing: { own: FinetuneWeights; fitted: FittedAdapter } | undefined;
    for (const own of weights) {
      const { kind, scale, token } = own;
      const { fitted, loaded } = await this.read(`${key} ${own.hash}`, own.file, tensors);
      uses.push({ adapter: loaded, strength: scale, ...(kind === 'textual_inversion' && { token }) });
      if (fitted.merged.size === 0 || scale === 0) continue;
      if (changing)
        throw new RequestError('Two of the Fine-Tunes are not of low rank; a picture can have one of those.');
      changing = { own, fitted };
    }
    if (!changing) return { key, uses };
    const { own, fitted } = changing;
    const changedKey = `${key}+${own.kind}:${own.hash}:${own.scale}`;
    return { key: changedKey, uses, changedWeights: () => this.write(changedKey, fitted, own.scale) };
  }

  /** Deletes the file of changed weights of what nothing waits to be loaded with. */
  discard(key: string): void {
    const file = this.changed.get(key);
    this.changed.delete(key);
    file?.then((path) => rm(path, { force: true })).catch(() => undefined);
  }

  private async read(id: string, file: string, tensors: ModelFolder['tensors']): Promise<ReadAdapter> {
    const kept = this.kept.get(id) ?? { adapter: readFitted(file, tensors), bytes: 0 };
    this.kept.delete(id);
    this.kept.set(id, kept);
    try {
      const adapter = await kept.adapter;
      kept.bytes = Math.max(leastBytes, adapter.loaded.bytes);
      this.forget();
      return adapter;
    } catch (error) {
      this.kept.delete(id);
      throw error;
    }
  }

  private forget(): void {
    for (const [oldest] of this.kept) {
      if (this.bytes <= mostBytes || this.kept.size === 1) return;
      this.kept.delete(oldest);
    }
  }

  private write(key: string, fitted: FittedAdapter, scale: number): Promise<string> {
    const write = async (): Promise<string> => {
      await mkdir(this.folder, { recursive: true });
      const file = join(this.folder, `${randomUUID()}.safetensors`);
      try {
        await writeMerged(fitted, scale, file);
        return file;
      } catch (error) {
        this.changed.delete(key);
        await rm(file, { force: true });
        throw error;
      }
    };
    const file = this.changed.get(key) ?? write();
    this.changed.set(key, file);
    return file;
  }

  private async removeLeftovers(): Promise<void> {
    for (const name of await readdir(this.folder)) {
      const file = join(this.folder, name);
      if (Date.now() - (await stat(file)).mtimeMs > leftAfterMs) await rm(file);
    }
  }
}

async function readFitted(file: string, tensors: ModelFolder['tensors']): Promise<ReadAdapter> {
  const fitted = fitAdapter(await readAdapter(file), tensors);
  return { fitted, loaded: await loadAdapter(fitted) };
}
