import { AbortError, OutOfMemoryError } from '@app/diffusion';
import type { CallBytes } from './arena';
import type { DrawCommand } from './drawing-in-progress';
import { DrawingInProgress, isAborted, pipelineRequest } from './drawing-in-progress';
import type { LoadedModel } from './loaded-model';
import type { LoadingOptions, DrawingModelSpec } from './model-loading';
import { describePipeline } from './model-loading';
import type { ModelRegistry } from './model-registry';
import { OneAtATime } from './one-at-a-time';
import { bytesPerRow, decodeBytes, encodeBytes } from './picture-memory';
import type { DeviceTime, WorkClock } from './work-clock';
import { wallClock } from './work-clock';

/** How often commands that wait for a merge are asked whether they are canceled. */
const cancelWatchMs = 100;

/** A command that is not being drawn yet. */
interface Waiting {
  command: DrawCommand;
  /** The drawing itself, if it began before and ran out of memory beside others. */
  previous?: DrawingInProgress;
  /** What its model takes; asked for once, because a Fine-Tune is merged for it. */
  spec?: Promise<DrawingModelSpec>;
  /** Whether that is known, or known to have failed. */
  isDescribed: boolean;
}

/** What admission has to know of the engine, and what it tells it. */
export interface AdmissionHost {
  /** Whether nothing is being drawn or enlarged. */
  isIdle(): boolean;
  /** Whether what is being drawn wants no other beside it. */
  isAlone(): boolean;
  begun(drawing: DrawingInProgress): void;
  failed(command: DrawCommand, error: unknown): void;
  /** Its Fine-Tune is being merged. @throws AbortError if the engine is to end */
  isMerging(command: DrawCommand): void;
  /** An owner’s command was loaded and encoded for so long. */
  charge(owner: string, ms: number): void;
  /** Does what calls a text encoder, when it may. */
  encode: WorkClock['during'];
}

/**
 * The commands that wait, in their order. One whose model has no room beside those in use waits until it has, and who comes after
 * it waits with it, so that it is never overtaken for good. So does one that ran out of memory beside others. Only the requester
 * waits while a Fine-Tune is merged.
 */
export class Admission {
  private readonly waiting: Waiting[] = [];
  private beginning: string | undefined;
  /** The command that is tried now, which another turn of the engine leaves alone. */
  private trying: Waiting | undefined;
  private onAdded = (): void => undefined;
  /** By which Fine-Tunes are merged, between the steps of what is being drawn. */
  private readonly merging = new OneAtATime();

  constructor(
    private readonly options: LoadingOptions,
    private readonly registry: ModelRegistry,
    private readonly host: AdmissionHost,
  ) {}

  /** Commands that wait. */
  get size(): number {
    return this.waiting.length;
  }

  /** The model that is being loaded, or from which the first drawing is being prepared. */
  get modelInUse(): string | undefined {
    return this.beginning;
  }

  add(command: DrawCommand): void {
    this.waiting.push({ command, isDescribed: false });
    this.onAdded();
  }

  /** Puts a drawing before all that wait, to be drawn again from its start while nothing else is drawn or enlarged. */
  addAlone(previous: DrawingInProgress): void {
    this.waiting.unshift({ command: { ...previous.command, alone: true }, previous, isDescribed: false });
  }

  endAborted(): void {
    for (const entry of this.waiting.filter((each) => isAborted(each.command) && each !== this.trying)) {
      this.remove(entry);
      this.host.failed(entry.command, new AbortError());
    }
  }

  /** Begins what has room. */
  async admit(): Promise<void> {
    for (const entry of [...this.waiting]) {
      if (!this.isReady(entry)) continue;
      while (this.waiting.includes(entry)) {
        if (!this.host.isIdle() && (entry.command.alone || this.host.isAlone())) return;
        if (!(await this.tryToBegin(entry))) return;
      }
    }
  }

  /** Resolves when another command may be ready to begin, or one is given up. */
  async settled(): Promise<void> {
    if (this.waiting.some(({ spec, isDescribed }) => !spec || isDescribed)) return;
    const described = this.waiting.map(({ spec }) => spec!.catch(() => undefined));
    if (described.length === 0) return;
    let watch: NodeJS.Timeout | undefined;
    const changed = new Promise<void>((resolve) => {
      this.onAdded = resolve;
      // A cancel wakes nobody: it is a number in shared memory.
      watch = setInterval(() => this.waiting.some(({ command }) => isAborted(command)) && resolve(), cancelWatchMs);
    });
    await Promise.race([...described, changed]);
    clearInterval(watch);
  }

  /** Whether its model is known. If not, that is found out meanwhile. */
  private isReady(entry: Waiting): boolean {
    if (!this.registry.has(entry.command.model.key)) void this.specOf(entry);
    return entry.isDescribed || entry.spec === undefined;
  }

  /** @returns whether it has begun or failed, or may be tried again; false: it has no room now */
  private async tryToBegin(entry: Waiting): Promise<boolean> {
    const { command } = entry;
    const spent = { ms: 0 };
    this.trying = entry;
    try {
      if (!(await this.hasRoom(entry))) return false;
      this.beginning = command.model.key;
      await this.begin(entry, spent);
      this.remove(entry);
    } catch (error) {
      if (await this.isWorthAnotherTry(entry, error)) return true;
      this.remove(entry);
      this.host.failed(command, error);
    } finally {
      this.trying = undefined;
      this.beginning = undefined;
      this.host.charge(command.owner, spent.ms);
    }
    return true;
  }

  private remove(entry: Waiting): void {
    this.waiting.splice(this.waiting.indexOf(entry), 1);
  }

  private async hasRoom(entry: Waiting): Promise<boolean> {
    const { model, request } = entry.command;
    if (this.host.isIdle()) return true;
    const loaded = this.registry.hasRoomFor(model.key, (each) => leastCalls(needsOf(each as LoadedModel), request));
    if (loaded !== undefined) return loaded;
    const spec = await this.specOf(entry);
    const { textEncoder, unet, vaeDecoder } = leastCalls(spec, request);
    return spec.bytes + textEncoder + unet + vaeDecoder <= this.registry.drawingBytes;
  }

  /** @param spent takes the milliseconds of loading and encoding, also if one of them fails */
  private async begin(entry: Waiting, spent: { ms: number }): Promise<void> {
    const { command, previous } = entry;
    // While it waited, its merged model may have made room on the disk for another.
    const describe = () => (command.model.weights ? this.describe(command) : this.specOf(entry));
    const load = () => this.registry.get(command.model.key, describe);
    const model = await wallClock.during(load, ({ ms }) => (spent.ms += ms));
    const { textEncoder } = leastCalls(needsOf(model), command.request);
    await this.registry.reserve(command.model.key, { textEncoder });
    let encodeMs = 0;
    const noteEncoding = ({ ms }: DeviceTime): void => {
      encodeMs = ms;
      spent.ms += ms;
    };
    const prepare = () => model.pipeline.prepare(pipelineRequest(command.request));
    const trajectories = await this.host.encode(prepare, noteEncoding, command.cancel);
    const drawing = new DrawingInProgress(command, model, trajectories, previous);
    drawing.computeMs += encodeMs;
    this.host.begun(drawing);
  }

  /**
   * What cannot begin for want of memory is tried again without idle models, and then with nothing beside it. Its own
   * model counts as in use: each try but the last releases another one, so that there is an end.
   */
  private async isWorthAnotherTry(entry: Waiting, error: unknown): Promise<boolean> {
    if (!(error instanceof OutOfMemoryError) || isAborted(entry.command)) return false;
    if (await this.registry.releaseIdle()) return true;
    if (this.host.isIdle()) return false;
    entry.command = { ...entry.command, alone: true };
    return true;
  }

  private specOf(entry: Waiting): Promise<DrawingModelSpec> {
    if (entry.spec) return entry.spec;
    const { command } = entry;
    const describe = () => this.describe(command);
    entry.spec = command.model.weights ? this.merging.run(describe) : describe();
    const noted = () => void (entry.isDescribed = true);
    entry.spec.then(noted, noted);
    return entry.spec;
  }

  private describe(command: DrawCommand): Promise<DrawingModelSpec> {
    const throwIfAborted = (): void => {
      if (isAborted(command)) throw new AbortError();
      this.host.isMerging(command);
    };
    return describePipeline(command.model, { ...this.options, signal: { throwIfAborted } });
  }
}

/** What the memory of a model's calls depends on. */
type CallNeeds = Parameters<typeof encodeBytes>[0] & Pick<DrawingModelSpec, 'rowsOfTexts'>;

function needsOf({ pipeline }: LoadedModel): CallNeeds {
  return { ...pipeline.facts, rowsOfTexts: (texts) => pipeline.rowsOfTexts(texts) };
}

/** The least that a request is drawn with: all its texts at once, then one picture at a time, with guidance. */
function leastCalls(needs: CallNeeds, request: DrawCommand['request']): Required<Omit<CallBytes, 'upscaler'>> {
  return {
    textEncoder: encodeBytes(needs, needs.rowsOfTexts(request)),
    unet: 2 * bytesPerRow(needs, request),
    vaeDecoder: decodeBytes(needs, request),
  };
}
