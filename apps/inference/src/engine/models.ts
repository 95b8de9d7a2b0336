import {
  asOutOfMemory,
  type Conditioner,
  type ControlNet,
  ModelFolderError,
  OutOfMemoryError,
  type Pipeline,
  type SafetyChecker,
  type TiledUpscaler,
  UpscalerError,
} from '@app/diffusion';
import { knownFaults } from '@app/process';
import type { EngineMessage } from './engine-protocol';
import type { CallBytes } from './memory';

/** A loaded model, ControlNet, upscaler or safety checker, and the memory that it takes. */
export interface Loaded<T = { release(): Promise<void> }> {
  key: string;
  instance: T;
  weightBytes: number;
  /** Bytes that the runtime keeps for its calls: those of the largest call of each part so far. */
  keptBytes: CallBytes;
}

interface MemoryNeed {
  modelKey: string;
  weightBytes: number;
  minCallBytes: CallBytes;
  /** Bytes that its ControlNets add to those in use. */
  controlBytes?: number;
}

export type LoadedModel = Loaded<Pipeline>;
export type LoadedConditioner = Loaded<Conditioner>;
export type LoadedControlNet = Loaded<ControlNet>;
export type LoadedUpscaler = Loaded<TiledUpscaler>;
export type LoadedSafetyChecker = Loaded<SafetyChecker>;

/**
 * The models, their conditioners, ControlNets, upscalers and safety checkers that a device has loaded. They stay loaded as long as all
 * fit into a budget of memory. To make room, those that are not in use are released, the least recently used first.
 */
export class Models {
  /** By key, the least recently used first. */
  private readonly loaded = new Map<string, Loaded>();
  /** Errors of files that are at fault, which are not read again for some minutes. */
  private readonly knownFaults = knownFaults<Error>();

  /** Bytes that are left to another process. */
  reservedBytes = 0;

  /**
   * @param budget bytes that all may take together
   * @param inUse keys that may not be released now
   */
  constructor(
    private readonly budget: () => number,
    private readonly inUse: () => ReadonlySet<string>,
    private readonly report: (message: EngineMessage) => void,
  ) {}

  /** Releases models that are not in use, until the bytes for another process are free. @returns whether they are */
  async makeReservedRoom(): Promise<boolean> {
    if (this.reservedBytes > 0) await this.makeRoom(0);
    return this.bytes <= this.budgetBytes;
  }

  private get budgetBytes(): number {
    return Math.max(0, this.budget() - this.reservedBytes);
  }

  /** Marks what is loaded under a key as the most recently used, and returns it. The caller knows its type. */
  get<T extends Loaded>(key: string): T | undefined {
    const found = this.loaded.get(key);
    if (!found) return undefined;
    this.loaded.delete(key);
    this.loaded.set(key, found);
    return found as T;
  }

  /** Whether something is loaded under a key. That does not count as use. */
  has(key: string): boolean {
    return this.loaded.has(key);
  }

  /** Whether a model fits beside all others in use. If there are none, it has room whatever its size. */
  hasRoom({ modelKey: key, weightBytes, minCallBytes, controlBytes = 0 }: MemoryNeed): boolean {
    const added = this.bytesToAdd(key, weightBytes, minCallBytes) + controlBytes;
    return this.bytesInUse(key) === 0 || this.bytesInUse() + added <= this.budgetBytes;
  }

  /** Bytes that a model with these calls adds to those in use. */
  bytesToAdd(key: string, weightBytes: number, callBytes: CallBytes): number {
    const keptBytes = this.loaded.get(key)?.keptBytes ?? {};
    const all = sumOf(maxOfEach(keptBytes, callBytes));
    return this.inUse().has(key) ? all - sumOf(keptBytes) : all + weightBytes;
  }

  /** Bytes that a call of a model's denoiser may take. Room is left for these calls of its other parts. */
  bytesForDenoiser({ key, weightBytes, keptBytes }: Loaded, otherCallBytes: CallBytes): number {
    const kept = sumOf({ ...maxOfEach(keptBytes, otherCallBytes), denoiser: 0 });
    return Math.max(keptBytes.denoiser ?? 0, this.budgetBytes - this.bytesInUse(key) - weightBytes - kept);
  }

  /**
   * Loads a model that is not loaded, after making room for it.
   * @throws Error of `open`; if files are at fault, the same error for some minutes
   */
  async load<T extends Loaded>(key: string, bytes: number, open: () => Promise<T['instance']>): Promise<T> {
    const fault = this.knownFaults.get(key);
    if (fault) throw fault;
    await this.makeRoom(bytes);
    const startedAt = performance.now();
    const instance = await open().catch((error: unknown) => {
      const isRefusal = error instanceof ModelFolderError || error instanceof UpscalerError;
      if (isRefusal) this.knownFaults.set(key, error);
      throw error;
    });
    const model = { key, instance, weightBytes: bytes, keptBytes: {} } as T;
    this.loaded.set(key, model);
    const loadMs = Math.round(performance.now() - startedAt);
    this.report({ type: 'loaded', key, loadMs, modelBytes: bytes, totalBytes: this.bytes });
    return model;
  }

  /** Does work that calls loaded models, after making room for it. If memory runs out, it is not kept. */
  async runCalls<T>(
    calls: readonly (readonly [model: Loaded, bytes: CallBytes])[],
    work: () => Promise<T>,
  ): Promise<T> {
    const before = calls.map(([model]) => ({ model, keptBytes: model.keptBytes }));
    for (const [model, bytes] of calls) {
      this.get(model.key);
      await this.keepForCalls(model, bytes);
    }
    try {
      return await work();
    } catch (error) {
      if (asOutOfMemory(error) instanceof OutOfMemoryError)
        for (const { model, keptBytes } of before) model.keptBytes = keptBytes;
      throw error;
    }
  }

  /** Makes room for calls of a loaded model, which counts as kept until the model is released. */
  async keepForCalls(model: Loaded, callBytes: CallBytes): Promise<void> {
    const all = maxOfEach(model.keptBytes, callBytes);
    const growth = sumOf(all) - sumOf(model.keptBytes);
    if (growth > 0) await this.makeRoom(growth, model.key);
    model.keptBytes = all;
  }

  /** Releases every model that is not in use. @returns whether there was one */
  async releaseIdle(): Promise<boolean> {
    const idle = this.idle();
    for (const key of idle) await this.release(key);
    return idle.length > 0;
  }

  async close(): Promise<void> {
    for (const key of [...this.loaded.keys()]) await this.release(key);
  }

  /** An estimate of the bytes of all that is loaded. */
  private get bytes(): number {
    return [...this.loaded.values()].reduce((sum, model) => sum + bytesOf(model), 0);
  }

  private async makeRoom(bytes: number, forKey?: string): Promise<void> {
    for (const key of this.idle().filter((each) => each !== forKey)) {
      if (this.bytes + bytes <= this.budgetBytes) return;
      await this.release(key);
    }
  }

  /** Keys that are not in use, the least recently used first. */
  private idle(): string[] {
    const inUse = this.inUse();
    return [...this.loaded.keys()].filter((key) => !inUse.has(key));
  }

  private bytesInUse(except?: string): number {
    const inUse = this.inUse();
    const others = [...this.loaded.values()].filter(({ key }) => key !== except && inUse.has(key));
    return others.reduce((sum, model) => sum + bytesOf(model), 0);
  }

  private async release(key: string): Promise<void> {
    const { instance } = this.loaded.get(key)!;
    this.loaded.delete(key);
    try {
      await instance.release();
    } catch (error) {
      this.report({ type: 'note', text: `${key} could not be released: ${(error as Error).message}` });
    }
    this.report({ type: 'released', key });
  }
}

const sumOf = (calls: CallBytes): number => (Object.values(calls) as number[]).reduce((sum, bytes) => sum + bytes, 0);

const bytesOf = ({ weightBytes, keptBytes }: Loaded): number => weightBytes + sumOf(keptBytes);

function maxOfEach(one: CallBytes, other: CallBytes): CallBytes {
  const all = { ...one };
  for (const [part, bytes] of Object.entries(other) as [keyof CallBytes, number][])
    all[part] = Math.max(bytes, all[part] ?? 0);
  return all;
}
