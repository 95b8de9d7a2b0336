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

/** What adapters may take that nothing draws with at the moment. */
const keptBytes = 256 * 2 ** 20;
/** After so long a file that a crash has left is nobody's. */
const leftForMs = 24 * 3_600_000;

interface ReadAdapter {
  fitted: FittedAdapter;
  loaded: LoadedAdapter;
}

/** A model with adapters: what is drawn with. */
export interface AdaptedModel {
  /** Equal for tasks that one loaded model draws. */
  key: string;
  uses: readonly AdapterUse[];
  /** Writes the weights that take the place of the model's, if an adapter is not of low rank. */
  writeChanged?: () => Promise<string>;
}

/**
 * The adapters of a device's models, read from their files. The least recently used are forgotten when all together
 * exceed so many bytes. What is not of low rank changes weights: such a model is loaded as one of its own, from a file
 * beside its folder that holds the changed ones.
 */
export class Adapters {
  /** In order of use; by the model's key and the file's hash. */
  private readonly read = new Map<string, ReadAdapter>();
  private readonly folder: string;

  constructor(cacheDir: string) {
    this.folder = join(cacheDir, 'changed-weights');
  }

  /** @throws WeightsError if a file is no adapter of this model */
  async adapt(
    { key }: DrawnModel,
    { tensors }: Pick<ModelFolder, 'tensors'>,
    weights: readonly FinetuneWeights[],
  ): Promise<AdaptedModel> {
    const all: { own: FinetuneWeights; adapter: ReadAdapter }[] = [];
    for (const own of weights) all.push({ own, adapter: await this.adapterOf(key, tensors, own) });
    const uses = all.map(({ own: { kind, scale, token }, adapter: { loaded } }) => {
      return { adapter: loaded, strength: scale, ...(kind === 'textual_inversion' && { token }) };
    });
    const [changing, ...others] = all.filter(({ adapter, own }) => adapter.fitted.merged.size > 0 && own.scale !== 0);
    if (others.length > 0)
      throw new RequestError('Two of the Fine-Tunes change weights by what is not of low rank; one at a time can.');
    if (!changing) return { key, uses };
    const { own, adapter } = changing;
    const writeChanged = () => this.write(adapter.fitted, own.scale);
    return { key: `${key}+${own.kind}:${own.hash}:${own.scale}`, uses, writeChanged };
  }

  /** Removes what crashes have left behind. */
  async removeLeftovers(): Promise<void> {
    for (const name of await readdir(this.folder).catch(() => [])) {
      const file = join(this.folder, name);
      const { mtimeMs } = await stat(file);
      if (Date.now() - mtimeMs > leftForMs) await rm(file, { force: true });
    }
  }

  private async adapterOf(
    model: string,
    tensors: ModelFolder['tensors'],
    { hash, file }: FinetuneWeights,
  ): Promise<ReadAdapter> {
    const key = `${model} ${hash}`;
    const found = this.read.get(key);
    this.read.delete(key);
    if (found) {
      this.read.set(key, found);
      return found;
    }
    const fitted = fitAdapter(await readAdapter(file), tensors);
    const adapter = { fitted, loaded: await loadAdapter(fitted) };
    this.read.set(key, adapter);
    this.forget();
    return adapter;
  }

  private forget(): void {
    let bytes = [...this.read.values()].reduce((sum, { loaded }) => sum + loaded.bytes, 0);
    for (const [key, { loaded }] of this.read) {
      if (bytes <= keptBytes || this.read.size === 1) return;
      this.read.delete(key);
      bytes -= loaded.bytes;
    }
  }

  private async write(fitted: FittedAdapter, scale: number): Promise<string> {
    await mkdir(this.folder, { recursive: true });
    const file = join(this.folder, `${randomUUID()}.safetensors`);
    await writeMerged(fitted, scale, file);
    return file;
  }
}
