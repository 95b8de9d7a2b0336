import { setTimeout as delay } from 'node:timers/promises';
import { AbortError, type Device, StableDiffusionPipeline } from '@app/diffusion';
import { removeFrom } from '@app/process';
import { Controls } from './controls';
import type { CallTimes } from './call-times';
import { type BeforeRestart, DrawingInProgress, pipelineRequest, type Task } from './drawing';
import type { LoadedModel, Models } from './models';
import type { Remedy } from './remedies';
import { type ReadTask, TaskReader } from './task-reader';
import type { Turns } from './turns';

/** Name under which the time of loading a model is noted. */
const loading = 'loading';

/** A task that waits to begin. */
interface WaitingTask {
  task: Task;
  /** Its drawing, if memory ran out for that and it is to be begun anew. */
  before?: BeforeRestart;
  reading?: Promise<void>;
  /** Once its files are read. */
  read?: ReadTask;
}

/** The device and the folder of an engine's thread. */
export interface ThreadOptions {
  device: Device;
  intraOpNumThreads: number;
  cacheDir: string;
}

/** The other parts of the engine, and calls back to the loop. */
export interface AdmissionContext {
  models: Models;
  turns: Turns;
  times: CallTimes;
  drawings: readonly DrawingInProgress[];
  /** Ends all tasks and drawings that are canceled. */
  endCanceled: () => void;
  /** A task is being worked on. */
  busy: (task: Task) => void;
  begun: (drawing: DrawingInProgress) => void;
  failed: (task: Task, error: unknown) => void;
  /** Finds the remedy when a task could not begin. */
  remedy: (error: unknown, task: Task) => Promise<Remedy>;
}

/**
 * The tasks that wait. Each goes three steps: its files are read, between the calls of drawings; its model is loaded; its
 * texts are encoded, and with that it is a drawing. Tasks take turns as their owners do. If one has no room beside the
 * models in use, those after it wait too, so that it is not overtaken for ever.
 */
export class Admission {
  private readonly waiting: WaitingTask[] = [];
  private readonly controls: Controls;
  private readonly reader: TaskReader;
  /** Keys of the model and the ControlNets of the task that is beginning, which make no room for each other. */
  keysBeingLoaded: readonly string[] = [];

  constructor(
    private readonly options: ThreadOptions,
    private readonly context: AdmissionContext,
  ) {
    this.controls = new Controls(options, context.models);
    this.reader = new TaskReader(options, context.models, this.controls);
  }

  /** Number of tasks that wait. */
  get size(): number {
    return this.waiting.length;
  }

  /** Bytes of the adapters in memory. */
  get adapterBytes(): number {
    return this.reader.adapterBytes;
  }

  add(task: Task): void {
    this.waiting.push({ task });
  }

  /** Puts a drawing before the tasks that wait, to be begun anew with nothing beside it. */
  addAlone(drawing: DrawingInProgress): void {
    const restarted = this.waiting.filter(({ before }) => before).length;
    this.waiting.splice(restarted, 0, { task: { ...drawing.task, alone: true }, before: drawing.beforeRestart });
  }

  /** Ends tasks that are canceled. */
  endWhere(isOver: (task: Task) => boolean): void {
    for (const waiting of this.waiting.filter(({ task }) => isOver(task))) this.fail(waiting, new AbortError());
  }

  /**
   * Begins the tasks that have room now.
   * @param ms for how long files are read, and further tasks are begun. Reading is many small pieces of work, each of
   * which would otherwise wait for a call of the device.
   */
  async admit(ms: number): Promise<void> {
    const until = performance.now() + ms;
    const left = new Set(this.waiting);
    let hasBegun = false;
    while (left.size > 0 && !(hasBegun && performance.now() >= until)) {
      const waiting = this.nextOf(left);
      left.delete(waiting);
      // A model may have been loaded since the last look.
      this.context.endCanceled();
      if (!this.waiting.includes(waiting)) continue;
      await this.read(waiting, until);
      const { read } = waiting;
      if (!read) continue;
      if (!this.hasRoom(waiting.task, read)) return;
      if (this.shouldWaitForOthers(waiting, read)) continue;
      await this.tryToBegin(waiting, read);
      hasBegun = true;
    }
  }

  /** The next task: one that is begun anew, else the first one of the owner who has had least of the device. */
  private nextOf(left: ReadonlySet<WaitingTask>): WaitingTask {
    const had = ({ task }: WaitingTask): number => this.context.turns.msOf(task.owner);
    const restarted = [...left].find(({ before }) => before);
    return restarted ?? [...left].reduce((first, other) => (had(other) < had(first) ? other : first));
  }

  /** Reads the files of a task until a time; if they take longer, the next call of `admit` goes on. */
  private async read(waiting: WaitingTask, until: number): Promise<void> {
    if (waiting.read) return;
    const startedAt = performance.now();
    waiting.reading ??= this.readFiles(waiting).catch((error: unknown) => this.fail(waiting, error));
    this.context.busy(waiting.task);
    await Promise.race([waiting.reading, delay(Math.max(0, until - startedAt), undefined, { ref: false })]);
    this.context.turns.charge(waiting.task.owner, performance.now() - startedAt);
  }

  private async readFiles(waiting: WaitingTask): Promise<void> {
    waiting.read = await this.reader.read(waiting.task);
    // The task may have been canceled meanwhile.
    if (!this.waiting.includes(waiting)) this.remove(waiting);
  }

  private hasRoom(task: Task, { key, folder, weightBytes, leastCalls, controls }: ReadTask): boolean {
    const { drawings, models } = this.context;
    if (drawings.length === 0) return true;
    const isAlone = task.alone || drawings.some((other) => other.task.alone);
    return !isAlone && models.hasRoom(key, weightBytes, leastCalls, this.controls.bytesToLoad(controls, folder, task));
  }

  /**
   * Whether a task lets drawings of others end before its model is loaded, because they would stand still meanwhile. That
   * is compared by what each owner will have had: the other at the end of the drawing, this one at the end of the loading.
   * So others who keep coming delay a task by no more than the time of loading its model.
   */
  private shouldWaitForOthers({ task, before }: WaitingTask, { key }: ReadTask): boolean {
    const { models, turns, times, drawings } = this.context;
    if (before || models.has(key)) return false;
    const overAt = turns.msOf(task.owner) + times.of(loading);
    return drawings.some(({ owner, msLeft }) => owner !== task.owner && turns.msOf(owner) + msLeft < overAt);
  }

  private async tryToBegin(waiting: WaitingTask, read: ReadTask): Promise<void> {
    const startedAt = performance.now();
    const charge = (): void => this.context.turns.charge(waiting.task.owner, performance.now() - startedAt);
    this.keysBeingLoaded = [read.key, ...read.controls.map(({ source }) => source.key)];
    try {
      const drawing = await this.begin(waiting, read).finally(charge);
      this.remove(waiting);
      this.context.begun(drawing);
    } catch (error) {
      const remedy = await this.context.remedy(error, waiting.task);
      if (remedy === 'end') this.fail(waiting, error);
      else if (remedy === 'alone') waiting.task = { ...waiting.task, alone: true };
    } finally {
      this.keysBeingLoaded = [];
    }
  }

  private async begin({ task, before }: WaitingTask, read: ReadTask): Promise<DrawingInProgress> {
    const { models, times } = this.context;
    const model = models.get<LoadedModel>(read.key) ?? (await this.load(task, read));
    const controls = await this.controls.load(read.controls, read.folder, task);
    const { textEncoder, vaeEncoder } = read.leastCalls;
    const calls = { textEncoder: textEncoder!, ...(vaeEncoder !== undefined && { vaeEncoder }) };
    const startedAt = performance.now();
    const trajectories = await models.call([[model, calls]], () =>
      model.instance.prepare({ ...pipelineRequest(task.request, controls), adapters: read.uses }),
    );
    const drawing = new DrawingInProgress(task, model, trajectories, times, before, controls);
    drawing.computeMs += performance.now() - startedAt;
    return drawing;
  }

  private async load({ model }: Task, { key, weightBytes, changedWeights }: ReadTask): Promise<LoadedModel> {
    const { models, times } = this.context;
    const { device, intraOpNumThreads } = this.options;
    const startedAt = performance.now();
    const file = await changedWeights?.();
    const options = { device, intraOpNumThreads, ...(file !== undefined && { changedWeights: file }) };
    const open = () => StableDiffusionPipeline.load(model.folder, options);
    const loaded = await models.load<LoadedModel>(key, weightBytes, open);
    times.note(loading, performance.now() - startedAt);
    return loaded;
  }

  private fail(waiting: WaitingTask, error: unknown): void {
    if (this.remove(waiting)) this.context.failed(waiting.task, error);
  }

  private remove(waiting: WaitingTask): boolean {
    const key = waiting.read?.key;
    const isRemoved = removeFrom(this.waiting, waiting);
    if (key !== undefined && this.waiting.every(({ read }) => read?.key !== key)) this.reader.discard(key);
    return isRemoved;
  }
}
