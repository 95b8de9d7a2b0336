import { AbortError } from '@app/diffusion';
import { removeFrom } from '@app/process';
import { type DrawCommand, DrawingInProgress, isAborted, pipelineRequest } from '../calls/drawing-in-progress';
import type { EngineShares } from '../time/engine-shares';
import type { LoadedModel } from '../models/loaded-model';
import { type DescriptionHost, ModelDescriptions, NotDescribedError } from './model-descriptions';
import { leastMemoryOf, needsOf } from './least-memory';
import type { LoadingOptions } from '../models/model-loading';
import type { ModelRegistry } from '../models/model-registry';
import { nextTry } from '../models/next-try';
import { goesAfterDrawings, notAhead } from '../calls/next-call';
import type { WorkClock } from '../time/work-clock';

/** How often commands that wait for a merge are asked whether they are canceled. */
const cancelWatchMs = 100;

/** A command that is not being drawn yet. */
interface Waiting {
  command: DrawCommand;
  /** The drawing itself, if it began before and ran out of memory beside others. */
  previous?: DrawingInProgress;
}

/** What admission has to know of the engine, and what it tells it. */
export interface AdmissionHost extends DescriptionHost {
  /** Merging, loading and encoding are their owner's, also where they fail. */
  shares: EngineShares;
  /** Milliseconds that a row of a call takes, in the mean. */
  rowMs: () => number;
  /** What is being drawn, and what it has left to do. */
  drawingsLeft(): readonly { owner: string; msLeft: number }[];
  /** Those whose pictures are being drawn or enlarged. */
  drawingOwners(): readonly string[];
  /** Whether nothing is being drawn or enlarged. */
  isIdle(): boolean;
  /** Whether what is being drawn or enlarged wants no other beside it. */
  isAnythingAlone(): boolean;
  begun(drawing: DrawingInProgress): void;
  failed(command: DrawCommand, error: unknown): void;
  /** Does what calls a text encoder, when it may. */
  encode: WorkClock['during'];
}

/**
 * The commands that wait, in their order, but for those of an owner who is ahead of another that waits: however many of
 * its models are loaded or fail to be, the other's come next. One whose model has no room beside those in use waits
 * until it has, and who comes after it waits with it, so that it is never overtaken for good. So does one that ran out
 * of memory beside others. Only the requester waits while a Fine-Tune is merged.
 */
export class Admission {
  private readonly waiting: Waiting[] = [];
  private beginning: string | undefined;
  /** The command that is tried now, which another round of the engine leaves alone. */
  private trying: Waiting | undefined;
  private onAdded = (): void => undefined;
  /** What the last load of a model took. */
  private loadMs = 0;
  private readonly descriptions: ModelDescriptions;

  constructor(
    options: LoadingOptions,
    private readonly registry: ModelRegistry,
    private readonly host: AdmissionHost,
  ) {
    this.descriptions = new ModelDescriptions(options, host, () => this.waiting.map(({ command }) => command));
  }

  /** Commands that wait. */
  get size(): number {
    return this.waiting.length;
  }

  /** The model that is being loaded, or from which a drawing is being prepared. */
  get modelInUse(): string | undefined {
    return this.beginning;
  }

  /** Keys of the models that commands wait to draw with. */
  get modelsAwaited(): readonly string[] {
    return this.waiting.map(({ command }) => command.model.key);
  }

  /** Whether one of this owner's waits. */
  has(owner: string): boolean {
    return this.waiting.some(({ command }) => command.owner === owner);
  }

  add(command: DrawCommand): void {
    this.waiting.push({ command });
    this.host.shares.wait(command.owner);
    this.onAdded();
  }

  /** Puts a drawing before all that wait, to be drawn again from its start while nothing else is drawn or enlarged. */
  addAlone(previous: DrawingInProgress): void {
    this.waiting.unshift({ command: { ...previous.command, alone: true }, previous });
  }

  endAborted(): void {
    for (const entry of this.waiting.filter((each) => isAborted(each.command) && each !== this.trying)) {
      this.remove(entry);
      this.host.failed(entry.command, new AbortError());
    }
  }

  /** Begins what has room. */
  async admit(): Promise<void> {
    const untried = new Set(this.waiting);
    for (let entry = this.nextInTurn(untried); entry; entry = this.nextInTurn(untried)) {
      untried.delete(entry);
      while (this.waiting.includes(entry) && this.isKnown(entry)) {
        if (!this.host.isIdle() && (entry.command.alone || this.host.isAnythingAlone())) return;
        if (!(await this.tryToBegin(entry))) return;
      }
      if (this.waiting.includes(entry)) this.describe(entry);
    }
  }

  /** Resolves when another command may be ready to begin, or one is given up. */
  async nextReady(): Promise<void> {
    if (this.waiting.length === 0) return;
    const pending = this.waiting.map(({ command }) => this.descriptions.known(command));
    if (this.waiting.some((entry) => this.isKnown(entry)) || pending.includes(undefined)) return;
    const described = pending.map((each) => each!.spec.catch(() => undefined));
    let watch: NodeJS.Timeout | undefined;
    const changed = new Promise<void>((resolve) => {
      this.onAdded = resolve;
      // A cancel wakes nobody: it is a number in shared memory.
      watch = setInterval(() => this.waiting.some(({ command }) => isAborted(command)) && resolve(), cancelWatchMs);
    });
    await Promise.race([...described, changed]);
    clearInterval(watch);
  }

  /**
   * Leaves the thread to a merge, which is a chain of hundreds of reads, writes and small calculations: each call of
   * the U-Net, of a decoder or an upscaler blocks the thread, so beside others a merge would have one link of its chain
   * for each of them. It has as much time as they have blocked the thread since the last time: what loads meanwhile, or
   * waits, earns it nothing.
   */
  async letMerge(): Promise<void> {
    const { shares, rowMs } = this.host;
    const ms = shares.takeBlocked();
    const owner = this.descriptions.mergingOwner;
    if (owner === undefined) return;
    const owners = [owner, ...this.host.drawingOwners()].map((each) => ({ owner: each }));
    const inTurn = notAhead(owners, shares, { rowMs });
    if (inTurn.some((each) => each.owner === owner)) await this.descriptions.letMerge(ms);
  }

  /** A drawing that starts again goes first; then comes the first command of an owner who is not ahead of others. */
  private nextInTurn(untried: ReadonlySet<Waiting>): Waiting | undefined {
    const { shares, rowMs } = this.host;
    const left = this.waiting.filter((entry) => untried.has(entry) && !this.goesLater(entry));
    const owned = left.map((entry) => ({ owner: entry.command.owner, entry }));
    const inTurn = notAhead(owned, shares, { rowMs });
    return left.find(({ previous }) => previous) ?? inTurn[0]?.entry;
  }

  /** Begins to find out what its model takes, and does not wait for it. */
  private describe({ command }: Waiting): void {
    this.descriptions.of(command).catch(() => undefined);
  }

  /** Whether its model would be loaded now, and short drawings of others go before that. */
  private goesLater(entry: Waiting): boolean {
    const { owner, model } = entry.command;
    if (entry.previous || this.registry.has(model.key) || !this.isKnown(entry)) return false;
    return goesAfterDrawings({ owner, ms: this.loadMs }, this.host.drawingsLeft(), this.host.shares);
  }

  private isKnown({ command }: Waiting): boolean {
    return this.registry.has(command.model.key) || (this.descriptions.known(command)?.isOver ?? false);
  }

  /**
   * @returns whether it has begun or failed, or may be tried again when its model is known; false: it has no room now
   */
  private async tryToBegin(entry: Waiting): Promise<boolean> {
    const { command } = entry;
    this.trying = entry;
    try {
      if (!(await this.hasRoom(entry))) return false;
      this.beginning = command.model.key;
      await this.begin(entry);
      this.remove(entry);
    } catch (error) {
      if (error instanceof NotDescribedError || (await this.isWorthAnotherTry(entry, error))) return true;
      this.remove(entry);
      this.host.failed(command, error);
    } finally {
      this.trying = undefined;
      this.beginning = undefined;
    }
    return true;
  }

  private remove(entry: Waiting): void {
    removeFrom(this.waiting, entry);
    this.descriptions.forgetUnwanted();
  }

  private async hasRoom(entry: Waiting): Promise<boolean> {
    const { model, request } = entry.command;
    if (this.host.isIdle()) return true;
    const loaded = this.registry.hasRoomFor(model.key, (each) => leastMemoryOf(needsOf(each as LoadedModel), request));
    if (loaded !== undefined) return loaded;
    const spec = await this.descriptions.of(entry.command);
    return this.registry.hasRoomToLoad(spec, leastMemoryOf(spec, request));
  }

  private async begin(entry: Waiting): Promise<void> {
    const { command, previous } = entry;
    const { shares } = this.host;
    // No other model is loaded meanwhile, so nothing is merged here.
    const describe = async () => {
      const spec = await this.descriptions.kept(command);
      const load = async (): Promise<LoadedModel> => {
        const loaded = await spec.load();
        this.loadMs = loaded.loadMs;
        return loaded;
      };
      return { ...spec, load: () => shares.chargeFor(command.owner, load) };
    };
    const model = await this.registry.get(command.model.key, describe);
    const { textEncoder } = leastMemoryOf(needsOf(model), command.request);
    await this.registry.reserve(command.model.key, { textEncoder });
    let encodeMs = 0;
    const prepare = () => model.pipeline.prepare(pipelineRequest(command.request));
    const noteEncoding: Parameters<WorkClock['during']>[1] = ({ ms, blockedMs }) => {
      encodeMs = ms;
      shares.noteBlocked(blockedMs);
      shares.charge(command.owner, ms);
    };
    const trajectories = await this.host.encode(prepare, noteEncoding, command.cancel);
    const drawing = new DrawingInProgress(command, model, trajectories, previous);
    drawing.computeMs += encodeMs;
    this.host.begun(drawing);
  }

  /** Its own model counts as in use: each try but the last releases another one, so that there is an end. */
  private async isWorthAnotherTry(entry: Waiting, error: unknown): Promise<boolean> {
    if (isAborted(entry.command)) return false;
    const next = await nextTry(error, { registry: this.registry, hasOthers: () => !this.host.isIdle() });
    if (next === 'alone') entry.command = { ...entry.command, alone: true };
    return next !== 'end';
  }
}
