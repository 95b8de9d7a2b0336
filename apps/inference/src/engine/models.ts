import {
  type ControlNet,
  ModelFolderError,
  type StableDiffusionPipeline,
  type TiledUpscaler,
  UpscalerError,
} from '@app/diffusion';
import { KnownFaults } from '@app/process';
import type { EngineMessage } from './engine-protocol';
import type { CallBytes } from './memory';

/** A model that is loaded, of any kind, and the memory that it takes. */
export interface Loaded<T = { release(): Promise<void> }> {
  key: string;
  pipeline: T;
  weightBytes: number;
  /** Bytes of the largest calls so far: the runtime keeps their memory. */
  largestCalls: CallBytes;
}

/** A model that draws. */
export type LoadedModel = Loaded<StableDiffusionPipeline>;
/** A ControlNet, which guides a model. */
export type LoadedControl = Loaded<ControlNet>;
/** A model that enlarges. */
export type LoadedUpscaler = Loaded<TiledUpscaler>;

/**
 * The models of any kind that a device has loaded. They stay while they fit into a budget of memory; to make room, those
 * that are not in use are released, the least recently used first. A model is loaded, however large it is, if it is the
 * only one in use.
 */
export class Models {
  /** In order of use, because a map keeps insertion order. */
  private readonly loaded = new Map<string, Loaded>();
  private readonly refusals = new KnownFaults<Error>();

  /** Bytes that are left to another process. */
  cededBytes = 0;

  /**
   * @param budget bytes that all may take
   * @param inUse keys of what may not be released now
   */
  constructor(
    private readonly budget: () => number,
    private readonly inUse: () => ReadonlySet<string>,
    private readonly report: (message: EngineMessage) => void,
  ) {}

  /** Releases models that are not in use, as far as the other process needs their room. @returns whether it has it */
  async makeCededRoom(): Promise<boolean> {
    if (this.cededBytes > 0) await this.makeRoom(0);
    return this.bytes <= this.budgetBytes;
  }

  private get budgetBytes(): number {
    return Math.max(0, this.budget() - this.cededBytes);
  }

  /** The model or upscaler of a key, if it is loaded; a key always has the same type. To ask for it is a use. */
  get<T extends Loaded>(key: string): T | undefined {
    const found = this.loaded.get(key);
    if (!found) return undefined;
    this.loaded.delete(key);
    this.loaded.set(key, found);
    return found as T;
  }

  /** Whether it is loaded; to ask that is no use. */
  has(key: string): boolean {
    return this.loaded.has(key);
  }

  /** Keys of what may not be released now. */
  get keysInUse(): ReadonlySet<string> {
    return this.inUse();
  }

  /** Whether a model has room beside those in use for itself, for calls of it, and for its ControlNets. */
  hasRoom(key: string, bytes: number, calls: CallBytes, controlBytes = 0): boolean {
    const others = this.bytesInUse(key);
    const own = this.loaded.get(key);
    const all = others + (own?.weightBytes ?? bytes) + sumOf(larger(own?.largestCalls ?? {}, calls)) + controlBytes;
    return others === 0 || all <= this.budgetBytes;
  }

  /** Bytes that a call of this model's U-Net may take, if it leaves room for these other calls. */
  bytesForUnet({ key, weightBytes, largestCalls }: Loaded, others: CallBytes): number {
    const kept = sumOf({ ...larger(largestCalls, others), unet: 0 });
    return Math.max(largestCalls.unet ?? 0, this.budgetBytes - this.bytesInUse(key) - weightBytes - kept);
  }

  /**
   * Loads what is not loaded, after making room for it: two large models at once may be more than there is memory.
   * @throws Error what `open` throws; if files are at fault, the same again for some minutes
   */
  async load<T extends Loaded>(key: string, bytes: number, open: () => Promise<T['pipeline']>): Promise<T> {
    const fault = this.refusals.of(key);
    if (fault) throw fault;
    await this.makeRoom(bytes);
    const startedAt = performance.now();
    const pipeline = await open().catch((error: unknown) => {
      const isRefusal = error instanceof ModelFolderError || error instanceof UpscalerError;
      if (isRefusal) this.refusals.note(key, error);
      throw error;
    });
    const model = { key, pipeline, weightBytes: bytes, largestCalls: {} } as T;
    this.loaded.set(key, model);
    const loadMs = Math.round(performance.now() - startedAt);
    this.report({ type: 'loaded', key, loadMs, modelBytes: bytes, totalBytes: this.bytes });
    return model;
  }

  /** Makes room for calls of a loaded model, which keeps it until it is released. */
  async reserve(model: Loaded, calls: CallBytes): Promise<void> {
    const all = larger(model.largestCalls, calls);
    const growth = sumOf(all) - sumOf(model.largestCalls);
    if (growth > 0) await this.makeRoom(growth, model.key);
    model.largestCalls = all;
  }

  /** Releases every model that is not in use, but for one. @returns whether there was one */
  async releaseIdle(except?: string): Promise<boolean> {
    const idle = this.idle().filter((key) => key !== except);
    for (const key of idle) await this.release(key);
    return idle.length > 0;
  }

  async close(): Promise<void> {
    for (const key of [...this.loaded.keys()]) await this.release(key);
  }

  /** Estimate of what all loaded models take. */
  private get bytes(): number {
    return [...this.loaded.values()].reduce((sum, model) => sum + bytesOf(model), 0);
  }

  private async makeRoom(bytes: number, forKey?: string): Promise<void> {
    for (const key of this.idle().filter((each) => each !== forKey)) {
      if (this.bytes + bytes <= this.budgetBytes) return;
      await this.release(key);
    }
  }

  /** The least recently used first. */
  private idle(): string[] {
    const inUse = this.inUse();
    return [...this.loaded.keys()].filter((key) => !inUse.has(key));
  }

  private bytesInUse(except: string): number {
    const inUse = this.inUse();
    const others = [...this.loaded.values()].filter(({ key }) => key !== except && inUse.has(key));
    return others.reduce((sum, model) => sum + bytesOf(model), 0);
  }

  private async release(key: string): Promise<void> {
    const { pipeline } = this.loaded.get(key)!;
    this.loaded.delete(key);
    this.report({ type: 'released', key });
    await pipeline.release();
  }
}

const sumOf = (calls: CallBytes): number => (Object.values(calls) as number[]).reduce((sum, bytes) => sum + bytes, 0);

const bytesOf = ({ weightBytes, largestCalls }: Loaded): number => weightBytes + sumOf(largestCalls);

/** Of each part the larger call. */
function larger(one: CallBytes, other: CallBytes): CallBytes {
  const all = { ...one };
  for (const [part, bytes] of Object.entries(other) as [keyof CallBytes, number][])
    all[part] = Math.max(bytes, all[part] ?? 0);
  return all;
}
