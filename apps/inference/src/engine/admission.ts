import { setTimeout as delay } from 'node:timers/promises';
import {
  AbortError,
  type Device,
  hasEncoder,
  type ModelFolder,
  modelWidths,
  providerOf,
  readModelFolder,
  RequestError,
  rowsOfTexts,
  StableDiffusionPipeline,
} from '@app/diffusion';
import { LruMap, removeFrom } from '@app/process';
import { type AdaptedModel, Adapters } from './adapters';
import { notAhead } from './batch';
import { Controls, type ReadControl } from './controls';
import type { CallTimes } from './call-times';
import { DrawingInProgress, pipelineRequest, type Task } from './drawing';
import type { DrawRequest } from './engine-protocol';
import { bytesPerRow, type CallBytes, decodeBytes, encodeBytes, pictureBytes, weightBytes } from './memory';
import type { LoadedModel, Models } from './models';
import type { Turns } from './turns';

/** Model folders of which what was read is kept: more than are drawn with in turn. */
const mostFolders = 8;

/** The model and adapters that a task is drawn with, and the memory that it needs. */
interface Ready extends AdaptedModel {
  folder: ModelFolder;
  controls: readonly ReadControl[];
  weightBytes: number;
  /** The least that its calls take: all texts at once, then one picture at a time, with guidance. */
  leastCalls: CallBytes;
}

/** A task that waits to begin. */
interface Waiting {
  task: Task;
  /** The drawing that it was before it ran out of memory beside others. */
  previous?: DrawingInProgress;
  reading?: Promise<void>;
  /** Once its files are read. */
  ready?: Ready;
}

/** The device and the folder of an engine's thread. */
export interface ThreadOptions {
  device: Device;
  intraOpNumThreads: number;
  cacheDir: string;
}

/** After a failure: to try once more, for there is room now; to begin anew with nothing beside it; or none is left. */
export type Remedy = 'again' | 'alone' | 'end';

/** The parts of the engine that admission works with, and its calls back to the loop. */
export interface AdmissionHost {
  models: Models;
  turns: Turns;
  times: CallTimes;
  drawings: readonly DrawingInProgress[];
  /** Ends all drawings and waiting tasks that are canceled. */
  endCanceled: () => void;
  /** Its files are being read. */
  busy: (task: Task) => void;
  begun: (drawing: DrawingInProgress) => void;
  failed: (task: Task, error: unknown) => void;
  /** The remedy when a task could not begin with the model of this key. */
  remedy: (error: unknown, task: Task, key: string) => Promise<Remedy>;
}

/**
 * The tasks that wait. Their files are read between the calls of others; then a task's model is loaded and its texts are
 * encoded, in the order of owners' turns. One that has no room beside the models in use waits, and who comes after it
 * waits with it, so that it is never overtaken for good.
 */
export class Admission {
  private readonly waiting: Waiting[] = [];
  private readonly adapters: Adapters;
  private readonly folders = new LruMap<ModelFolder>(mostFolders);
  private readonly controls: Controls;
  /** Keys of the model and the ControlNets of the task that begins: none makes room for another of them. */
  keysBeingLoaded: readonly string[] = [];

  constructor(
    private readonly options: ThreadOptions,
    private readonly host: AdmissionHost,
  ) {
    this.adapters = new Adapters(options.cacheDir);
    this.controls = new Controls(options, host.models);
  }

  get size(): number {
    return this.waiting.length;
  }

  /** Bytes of the adapters in memory. */
  get adapterBytes(): number {
    return this.adapters.bytes;
  }

  add(task: Task): void {
    this.waiting.push({ task });
  }

  /** Puts a drawing before all that wait, to be drawn again from its start with nothing beside it. */
  addAlone(previous: DrawingInProgress): void {
    this.waiting.unshift({ task: { ...previous.task, alone: true }, previous });
  }

  /** Ends what is canceled. */
  endWhere(isOver: (task: Task) => boolean): void {
    for (const entry of this.waiting.filter(({ task }) => isOver(task))) this.fail(entry, new AbortError());
  }

  /**
   * Begins what has room now.
   * @param ms for how long files are read: that is a chain of many small pieces of work, which calls of the device would
   * stretch for ever
   */
  async admit(ms: number): Promise<void> {
    const until = performance.now() + ms;
    const left = new Set(this.waiting);
    while (left.size > 0) {
      const entry = this.nextInTurn(left);
      left.delete(entry);
      // Another model may have been loaded since this was looked at last.
      this.host.endCanceled();
      if (!this.waiting.includes(entry)) continue;
      await this.read(entry, until);
      const { task, ready } = entry;
      if (!ready) continue;
      const { drawings, models } = this.host;
      const isAlone = task.alone || drawings.some((other) => other.task.alone);
      const controlBytes = this.controls.bytesOf(ready.controls, models.keysInUse);
      const hasRoom = models.hasRoom(ready.key, ready.weightBytes, ready.leastCalls, controlBytes);
      if (drawings.length > 0 && (isAlone || !hasRoom)) return;
      if (!this.goesLater(entry, ready)) await this.tryToBegin(entry, ready);
    }
  }

  /** The next task: one that starts again, else the first of an owner who is not ahead of others. */
  private nextInTurn(left: ReadonlySet<Waiting>): Waiting {
    const entries = [...left].map((entry) => ({ entry, owner: entry.task.owner, msLeft: 0 }));
    return [...left].find(({ previous }) => previous) ?? notAhead(entries, this.host.turns)[0].entry;
  }

  private async read(entry: Waiting, until: number): Promise<void> {
    if (entry.ready) return;
    const startedAt = performance.now();
    entry.reading ??= this.readFiles(entry).catch((error: unknown) => this.fail(entry, error));
    this.host.busy(entry.task);
    await Promise.race([entry.reading, delay(until - startedAt, undefined, { ref: false })]);
    this.host.turns.charge(entry.task.owner, performance.now() - startedAt);
  }

  private async readFiles(entry: Waiting): Promise<void> {
    const { model, adapters, request } = entry.task;
    const folder = this.folders.get(model.key) ?? (await readModelFolder(model.folder));
    this.folders.set(model.key, folder);
    // A model without an encoder draws from texts all the same, so nothing is said against it.
    if (request.image && !hasEncoder(folder))
      throw new RequestError(`The model ${model.name} has no encoder, so it cannot draw from \`image\`.`);
    const adapted = await this.adapters.adapt(model, folder, adapters);
    if (!this.host.models.has(adapted.key)) await adapted.changedWeights?.();
    const controls = await this.controls.read(entry.task);
    const bytes = weightBytes(folder, this.options.device);
    entry.ready = { folder, ...adapted, controls, weightBytes: bytes, leastCalls: this.leastCalls(folder, request) };
    if (!this.waiting.includes(entry)) this.remove(entry);
  }

  /**
   * Whether a task that has room lets drawings of others end before its model is loaded, which would hold them up. It
   * compares what each owner will have had: the other at the end of its drawing, this one at the end of the loading.
   * So others who keep coming delay it by no more than the time of its own loading.
   */
  private goesLater({ task, previous }: Waiting, { key }: Ready): boolean {
    const { models, turns, times, drawings } = this.host;
    if (previous || models.has(key)) return false;
    const overAt = turns.msOf(task.owner) + times.of('loading');
    return drawings.some(({ owner, msLeft }) => owner !== task.owner && turns.msOf(owner) + msLeft < overAt);
  }

  private async tryToBegin(entry: Waiting, ready: Ready): Promise<void> {
    const startedAt = performance.now();
    this.keysBeingLoaded = [ready.key, ...ready.controls.map(({ model }) => model.key)];
    try {
      const drawing = await this.begin(entry, ready).finally(() => (this.keysBeingLoaded = []));
      this.remove(entry);
      this.host.begun(drawing);
    } catch (error) {
      const remedy = await this.host.remedy(error, entry.task, ready.key);
      if (remedy === 'end') this.fail(entry, error);
      else if (remedy === 'alone') entry.task = { ...entry.task, alone: true };
    } finally {
      this.host.turns.charge(entry.task.owner, performance.now() - startedAt);
    }
  }

  private async begin(entry: Waiting, ready: Ready): Promise<DrawingInProgress> {
    const { models, times } = this.host;
    const { task, previous } = entry;
    const model = models.get<LoadedModel>(ready.key) ?? (await this.load(task, ready));
    const { textEncoder, vaeEncoder } = ready.leastCalls;
    const controls = await this.controls.load(ready.controls, ready.folder, task);
    await models.reserve(model, { textEncoder: textEncoder!, ...(vaeEncoder !== undefined && { vaeEncoder }) });
    const startedAt = performance.now();
    const trajectories = await model.pipeline.prepare({
      ...pipelineRequest(task.request, controls),
      adapters: ready.uses,
    });
    const drawing = new DrawingInProgress(task, model, trajectories, times, previous, controls);
    drawing.computeMs += performance.now() - startedAt;
    return drawing;
  }

  private async load({ model }: Task, { key, weightBytes: bytes, changedWeights }: Ready): Promise<LoadedModel> {
    const { models, times } = this.host;
    const { device, intraOpNumThreads } = this.options;
    const startedAt = performance.now();
    const file = await changedWeights?.();
    const options = { device, intraOpNumThreads, ...(file !== undefined && { changedWeights: file }) };
    const open = () => StableDiffusionPipeline.load(model.folder, options);
    const loaded = await models.load<LoadedModel>(key, bytes, open);
    times.note('loading', performance.now() - startedAt);
    return loaded;
  }

  private fail(entry: Waiting, error: unknown): void {
    if (this.remove(entry)) this.host.failed(entry.task, error);
  }

  private remove(entry: Waiting): boolean {
    const { key } = entry.ready ?? {};
    const isRemoved = removeFrom(this.waiting, entry);
    if (key !== undefined && this.waiting.every(({ ready }) => ready?.key !== key)) this.adapters.discard(key);
    return isRemoved;
  }

  private leastCalls(folder: ModelFolder, request: DrawRequest): CallBytes {
    const widths = modelWidths(folder);
    return {
      textEncoder: encodeBytes(widths, rowsOfTexts(request, folder.textEncoders[0].tokens)),
      ...(request.image && { vaeEncoder: pictureBytes(folder, widths, request) }),
      unet: 2 * bytesPerRow(widths, request, providerOf(this.options.device)),
      vaeDecoder: decodeBytes(widths, request),
    };
  }
}
