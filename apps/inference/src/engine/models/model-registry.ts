import { OneAtATime } from '@app/process';
import type { Arenas, CallBytes, DrawingCalls } from '../memory/arena';
import { ModelMemory, type ModelSize } from '../memory/model-memory';
import type { ModelLoaded } from '../engine-protocol';
import type { Lane } from '../lane';
import { Refusals } from './refusals';

/** Anything with sessions to release. */
export interface Releasable {
  release(): Promise<void>;
}

/** A model to load: its estimated bytes, and how to load it. */
export interface ModelSpec<T extends Releasable> extends ModelSize {
  load: () => Promise<T>;
  /** Models of one series replace each other: once a later one is used, an earlier one is hardly asked for again. */
  series?: string;
}

interface Loaded {
  model: Releasable;
  memory: ModelMemory;
  series: string | undefined;
}

/** What the choice of models to release depends on. */
export interface ModelUse {
  /** Keys of the models that may not be released now. */
  inUse(): ReadonlySet<string>;
  /** Keys of the models that something waits for, which go last. */
  awaited(): ReadonlySet<string>;
}

/**
 * The loaded models of one device. Loads on first use and keeps what fits into a budget. Those of a series that a later
 * one has replaced go first, then the least recently used, last what something waits for, and none that is in use; a
 * model is loaded, however large, if nothing else is in the way. One call waits for the other.
 *
 * The budget bounds what all owners have loaded. One who has many models loaded takes the place of others' idle ones,
 * and is charged for each load (`admission.ts`): theirs are loaded again before its next ones.
 */
export class ModelRegistry {
  /** In order of use, because a map keeps insertion order. */
  private readonly loaded = new Map<string, Loaded>();

  /** Loads, and releases for want of room. */
  private readonly changes = new OneAtATime();
  /** For which room is being made, or has been: of a model that is being loaded, or of a call. */
  private arriving: ModelMemory | undefined;
  private readonly refusals = new Refusals();

  constructor(
    private readonly budgetBytes: number,
    private readonly use: ModelUse,
    private readonly onLoad: (report: ModelLoaded) => void,
    private readonly onRelease: (key: string) => void,
  ) {}

  /** Estimate of what all loaded models take, with what their arenas hold. */
  get bytes(): number {
    return ModelMemory.sum([...this.loaded.values()].map(({ memory }) => memory));
  }

  /** Bytes that are left for drawing when every model that is not in use makes room. */
  get drawingBytes(): number {
    return this.leftBeside();
  }

  /**
   * Whether a loaded model has room to be drawn with beside those in use, by these calls of all threads.
   * @returns undefined if it is not loaded
   */
  hasRoomFor(key: string, callsOf: (model: Releasable) => CallBytes): boolean | undefined {
    const entry = this.loaded.get(key);
    if (!entry) return undefined;
    return this.fits(entry.memory, callsOf(entry.model));
  }

  /** Whether a model that is not loaded has room beside those in use, with these calls of all threads. */
  hasRoomToLoad(size: ModelSize, calls: CallBytes): boolean {
    return this.fits(new ModelMemory(size, this.memories()), calls);
  }

  /**
   * Bytes that one call of a loaded model's U-Net may take: what it has taken before, else what is left for drawing.
   * While a model is loaded that is no more than is free, so that the call does not wait until idle models can make
   * room.
   * @param decoding bytes that decoding one picture takes, for which there has to be room as well
   */
  callBytes(key: string, decoding: number, lane?: Lane): number {
    return arenasOf(this.loaded.get(key)!, lane).callBytes(
      this.changes.isBusy ? this.freeBytes : this.drawingBytes,
      decoding,
    );
  }

  /** Whether each lane may make these calls of a loaded model at the same time, when every idle model makes room. */
  hasRoomInLanes(key: string, calls: DrawingCalls): boolean {
    return this.loaded.get(key)!.memory.arenas.lanes.growth(calls) <= Math.max(0, this.drawingBytes);
  }

  /**
   * Makes room for calls of a loaded model, which keeps it until it is released. What one lane reserves, each other has
   * as well. Only where idle models have to make room does this wait for a model that is being loaded.
   */
  async reserve(key: string, calls: CallBytes, lane?: Lane): Promise<void> {
    const arenas = arenasOf(this.loaded.get(key)!, lane);
    const growth = arenas.growth(calls);
    if (growth === 0) return;
    if (growth <= this.freeBytes) return arenas.note(calls);
    await this.changes.run(async () => {
      await this.withRoom(new ModelMemory({ bytes: arenas.growth(calls) }), async () => arenas.note(calls));
    });
  }

  /** Whether a model of this key is loaded; asking does not count as a use. */
  has(key: string): boolean {
    return this.loaded.has(key);
  }

  /**
   * The model of this key, which must always have the same type. One whose files cannot be used is not loaded again for
   * some minutes.
   */
  get<T extends Releasable>(key: string, describe: () => Promise<ModelSpec<T>>): Promise<T> {
    return this.changes.run(() => this.find(key, describe));
  }

  /** Releases every model that is not in use. @returns whether there was one */
  async releaseIdle(): Promise<boolean> {
    return this.changes.run(async () => {
      let hasReleased = false;
      for (const key of this.idle()) {
        await this.release(key);
        hasReleased = true;
      }
      return hasReleased;
    });
  }

  /** Releases every model. */
  clear(): Promise<void> {
    return this.changes.run(async () => {
      for (const key of [...this.loaded.keys()]) await this.release(key);
    });
  }

  private async find<T extends Releasable>(key: string, describe: () => Promise<ModelSpec<T>>): Promise<T> {
    const found = this.loaded.get(key);
    if (found) {
      this.loaded.delete(key);
      this.loaded.set(key, found);
      return found.model as T;
    }
    this.refusals.throwIfKnown(key);
    const spec = await describe();
    let startedAt = 0;
    const load = (): Promise<T> => {
      startedAt = performance.now();
      return spec.load().catch((error: unknown) => {
        this.refusals.note(key, error);
        throw error;
      });
    };
    // Room is made first: two large models at once may be more than there is memory.
    const memory = new ModelMemory(spec, this.memories());
    const model = await this.withRoom(memory, load, spec.series);
    this.loaded.set(key, { model, memory, series: spec.series });
    const loadMs = Math.round(performance.now() - startedAt);
    this.onLoad({ key, loadMs, modelBytes: spec.bytes, totalBytes: this.bytes });
    return model;
  }

  /**
   * Makes room for so much and uses it. Nobody else takes that room meanwhile.
   * @param series that of the model it is for
   */
  private async withRoom<R>(memory: ModelMemory, use: () => Promise<R>, series?: string): Promise<R> {
    this.arriving = memory;
    try {
      for (const key of this.idle(series)) {
        if (this.freeBytes >= 0) break;
        await this.release(key);
      }
      return await use();
    } finally {
      this.arriving = undefined;
    }
  }

  /** Of what is loaded, and of that for which room is being made. */
  private memories(): ModelMemory[] {
    const loaded = [...this.loaded.values()].map(({ memory }) => memory);
    return this.arriving ? [...loaded, this.arriving] : loaded;
  }

  /** Whether a model and these calls of it have room beside the models in use. */
  private fits(memory: ModelMemory, calls: CallBytes): boolean {
    const left = this.drawingBytes;
    const own = left - this.leftBeside(memory);
    return own + memory.arenas.whole.growth(calls) <= Math.max(0, left);
  }

  /** Bytes that are left beside the models in use, and this one. */
  private leftBeside(...added: readonly ModelMemory[]): number {
    const inUse = this.use.inUse();
    const used = [...this.loaded].filter(([key]) => inUse.has(key)).map(([, { memory }]) => memory);
    return this.budgetBytes - ModelMemory.sum(new Set([...used, ...(this.arriving ? [this.arriving] : []), ...added]));
  }

  /** Bytes that are left without releasing anything; below 0 where more is used than there is. */
  private get freeBytes(): number {
    return this.budgetBytes - ModelMemory.sum(this.memories());
  }

  /**
   * Models that are not in use, in the order in which they are released. One may come into use while those before it
   * are released.
   * @param replaced a series of which a later model comes
   */
  private *idle(replaced?: string): Iterable<string> {
    const [inUse, awaited] = [this.use.inUse(), this.use.awaited()];
    const latest = new Map([...this.loaded].map(([key, { series }]) => [series, key]));
    const rank = ([key, { series }]: readonly [string, Loaded]): number => {
      if (awaited.has(key)) return 2;
      return series === undefined || (series !== replaced && latest.get(series) === key) ? 1 : 0;
    };
    const idle = [...this.loaded].filter(([key]) => !inUse.has(key)).sort((a, b) => rank(a) - rank(b));
    for (const [key] of idle) if (!this.use.inUse().has(key)) yield key;
  }

  private async release(key: string): Promise<void> {
    const { model } = this.loaded.get(key)!;
    this.loaded.delete(key);
    this.onRelease(key);
    await model.release();
  }
}

function arenasOf({ memory: { arenas } }: Loaded, lane: Lane | undefined): Arenas {
  return lane === undefined ? arenas.whole : arenas.lanes;
}
