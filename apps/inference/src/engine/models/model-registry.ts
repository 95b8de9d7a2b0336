import type { CallBytes, DrawingCalls } from '../memory/arena';
import { Arenas } from '../memory/arena';
import type { ModelLoaded } from '../engine-protocol';
import { laneCount } from '../threads/lane-places';
import { OneAtATime } from '../common/one-at-a-time';
import { Refusals } from './refusals';

/** Anything with sessions to release. */
export interface Releasable {
  release(): Promise<void>;
}

/** A model to load: its estimated bytes, and how to load it. */
export interface ModelSpec<T extends Releasable> {
  bytes: number;
  load(): Promise<T>;
}

interface Loaded {
  model: Releasable;
  /** Of the model itself, with its copies in the lanes. */
  bytes: number;
  /** Of its calls, by all threads and in the lanes. */
  arenas: Record<'whole' | 'lanes', Arenas>;
}

/**
 * The loaded models of one device. Loads on first use and keeps what fits into a budget. The least recently used go first, but none
 * that is in use; a model is loaded, however large, if nothing else is in the way. One call waits for the other.
 *
 * The budget bounds what all owners have loaded. One who has many models loaded takes the place of others' idle ones, and is
 * charged for each load (`admission.ts`): theirs are loaded again before its next ones.
 */
export class ModelRegistry {
  /** In order of use, because a map keeps insertion order. */
  private readonly loaded = new Map<string, Loaded>();

  private readonly inOrder = new OneAtATime();
  /** For which room is being made, or has been: of a model that is being loaded, or of a call. */
  private claimedBytes = 0;
  private readonly refusals = new Refusals();

  /** @param inUse keys of the models that may not be released now */
  constructor(
    private readonly budgetBytes: number,
    private readonly inUse: () => ReadonlySet<string>,
    private readonly onLoad: (report: ModelLoaded) => void,
    private readonly onRelease: (key: string) => void,
  ) {}

  /** Estimate of what all loaded models take, with what their arenas hold. */
  get bytes(): number {
    return sumOf(this.loaded.values());
  }

  /** Bytes that are left for drawing when every model that is not in use makes room. */
  get drawingBytes(): number {
    const inUse = this.inUse();
    const used = [...this.loaded].filter(([key]) => inUse.has(key));
    return this.budgetBytes - this.claimedBytes - sumOf(used.map(([, entry]) => entry));
  }

  /**
   * Whether a loaded model has room to be drawn with beside those in use, by these calls of all threads.
   * @returns undefined if it is not loaded
   */
  hasRoomFor(key: string, callsOf: (model: Releasable) => CallBytes): boolean | undefined {
    const entry = this.loaded.get(key);
    if (!entry) return undefined;
    const own = this.inUse().has(key) ? 0 : sumOf([entry]);
    return own + entry.arenas.whole.growth(callsOf(entry.model)) <= Math.max(0, this.drawingBytes);
  }

  /**
   * Bytes that one call of a loaded model's U-Net may take: what it has taken before, else what is left for drawing. While
   * a model is loaded that is no more than is free, so that the call does not wait until idle models can make room.
   * @param decoding bytes that decoding one picture takes, for which there has to be room as well
   * @param lane by which; without one, by all threads
   */
  callBytes(key: string, decoding: number, lane?: number): number {
    return arenasOf(this.loaded.get(key)!, lane).callBytes(
      this.inOrder.isBusy ? this.freeBytes : this.drawingBytes,
      decoding,
    );
  }

  /** Whether each lane may make these calls of a loaded model at the same time, when every idle model makes room. */
  hasRoomInLanes(key: string, calls: DrawingCalls): boolean {
    return this.loaded.get(key)!.arenas.lanes.growth(calls) <= Math.max(0, this.drawingBytes);
  }

  /**
   * Makes room for calls of a loaded model, which keeps it until it is released. What one lane reserves, each other has
   * as well. Only where idle models have to make room does this wait for a model that is being loaded.
   * @param lane by which; without one, by all threads
   */
  async reserve(key: string, calls: CallBytes, lane?: number): Promise<void> {
    const arenas = arenasOf(this.loaded.get(key)!, lane);
    const growth = arenas.growth(calls);
    if (growth === 0) return;
    if (growth <= this.freeBytes) return arenas.note(calls);
    await this.inOrder.run(async () => {
      await this.claim(arenas.growth(calls), async () => arenas.note(calls));
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
    return this.inOrder.run(() => this.find(key, describe));
  }

  /** Releases every model that is not in use. @returns whether there was one */
  async releaseIdle(): Promise<boolean> {
    return (await this.inOrder.run(() => this.releaseFor(Infinity))) > 0;
  }

  /** Releases every model. */
  clear(): Promise<void> {
    return this.inOrder.run(async () => {
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
    const model = await this.claim(spec.bytes, load);
    const arenas = { whole: new Arenas(1), lanes: new Arenas(laneCount) };
    this.loaded.set(key, { model, bytes: spec.bytes, arenas });
    const loadMs = Math.round(performance.now() - startedAt);
    this.onLoad({ key, loadMs, modelBytes: spec.bytes, totalBytes: this.bytes });
    return model;
  }

  /** Makes room for so many bytes and uses it. Nobody else takes that room meanwhile. */
  private async claim<R>(bytes: number, use: () => Promise<R>): Promise<R> {
    this.claimedBytes = bytes;
    try {
      await this.releaseFor(bytes);
      return await use();
    } finally {
      this.claimedBytes = 0;
    }
  }

  /** Bytes that are left without releasing anything; below 0 where more is used than there is. */
  private get freeBytes(): number {
    return this.budgetBytes - this.claimedBytes - this.bytes;
  }

  /** Releases models that are not in use until so many bytes are free, or none is left to release. @returns how many it released */
  private async releaseFor(bytes: number): Promise<number> {
    let released = 0;
    const inUse = this.inUse();
    for (const key of [...this.loaded.keys()].filter((each) => !inUse.has(each))) {
      if (this.bytes + bytes <= this.budgetBytes) break;
      await this.release(key);
      released++;
    }
    return released;
  }

  private async release(key: string): Promise<void> {
    const { model } = this.loaded.get(key)!;
    this.loaded.delete(key);
    this.onRelease(key);
    await model.release();
  }
}

function sumOf(loaded: Iterable<Loaded>): number {
  return [...loaded].reduce((sum, { bytes, arenas }) => sum + bytes + arenas.whole.bytes + arenas.lanes.bytes, 0);
}

function arenasOf({ arenas }: Loaded, lane: number | undefined): Arenas {
  return lane === undefined ? arenas.whole : arenas.lanes;
}
