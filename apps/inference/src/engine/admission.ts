import { setTimeout as delay } from 'node:timers/promises';
import { AbortError, asOutOfMemory, StableDiffusionPipeline } from '@app/diffusion';
import { removeFrom } from '@app/process';
import type { Adapters } from './adapters';
import { ControlNets } from './control-nets';
import type { CallTimes } from './call-times';
import { Drawing, type RestartState, pipelineRequest, type Task } from './drawing';
import type { EngineMessage, ThreadOptions } from './engine-protocol';
import type { LoadedModel, Models } from './models';
import type { Attempt, Remedy } from './remedies';
import { type TaskFiles, TaskReader } from './task-reader';
import type { Turns } from './turns';

/** Milliseconds between two checks for cancels while files are read. */
export const watchMs = 100;
/** Name under which the time of loading a model is noted. */
const loading = 'loading';

/** A task that waits to begin. */
interface WaitingTask extends Attempt {
  /** State of the drawing that it was before, if it is restarted. */
  restartState?: RestartState;
  reading?: Promise<void>;
  /** Contents of its files, once they are read. */
  files?: TaskFiles;
}

/** Parts of the engine that admission works with, and its calls back to the loop. */
export interface AdmissionContext {
  adapters: Adapters;
  models: Models;
  turns: Turns;
  times: CallTimes;
  drawings: readonly Drawing[];
  /** Ends all tasks and drawings that are canceled. */
  endCanceled: () => void;
  report: (message: EngineMessage) => void;
  begun: (drawing: Drawing) => void;
  failed: (task: Task, error: unknown) => void;
  /** Finds the remedy for a task that could not begin. */
  remedy: (error: unknown, waiting: Attempt) => Promise<Remedy>;
}

/**
 * The tasks that wait. Each takes three steps to become a drawing: its files are read, between the calls of drawings;
 * its model is loaded; its texts are encoded. The owner who has used the device least goes first. A task that has no
 * room beside the models in use holds up those after it, because otherwise they could keep it waiting for ever.
 */
export class Admission {
  private readonly waiting: WaitingTask[] = [];
  private readonly controls: ControlNets;
  private readonly reader: TaskReader;
  /** Keys of the model and the ControlNets of the task that is just beginning. None of them may be released. */
  keysBeingLoaded: readonly string[] = [];

  constructor(
    private readonly options: ThreadOptions,
    private readonly context: AdmissionContext,
  ) {
    this.controls = new ControlNets(options, context.models);
    this.reader = new TaskReader(options, context.models, context.adapters, this.controls);
  }

  /** Number of tasks that wait. */
  get size(): number {
    return this.waiting.length;
  }

  add(task: Task): void {
    this.waiting.push({ task, timesOutOfMemory: 0 });
  }

  /** Adds the task of a drawing that has to restart. It goes before all other tasks, and has nothing beside it. */
  addRestarted({ task, restartState }: Drawing): void {
    const restarted = this.waiting.filter((waiting) => waiting.restartState).length;
    this.waiting.splice(restarted, 0, { task: { ...task, alone: true }, restartState, timesOutOfMemory: 0 });
  }

  /** Ends tasks that are canceled. */
  endWhere(isOver: (task: Task) => boolean): void {
    for (const waiting of this.waiting.filter(({ task }) => isOver(task))) this.fail(waiting, new AbortError());
  }

  /**
   * Begins the tasks that have room now.
   * @param ms time for reading files and for beginning more than one task. Reading consists of many small pieces of
   * work; without this time each of them would wait for a call of the device.
   */
  async admit(ms: number): Promise<void> {
    const until = performance.now() + ms;
    const left = new Set(this.waiting);
    let hasBegun = false;
    while (left.size > 0 && !(hasBegun && performance.now() >= until)) {
      const waiting = this.nextOf(left);
      left.delete(waiting);
      if (!this.isWanted(waiting)) continue;
      await this.readUntil(until, waiting);
      const { files } = waiting;
      if (!files || !this.isWanted(waiting)) continue;
      if (!this.hasRoom(waiting.task, files)) return;
      if (this.shouldWaitForOthers(waiting, files)) continue;
      await this.tryToBegin(waiting, files);
      hasBegun = true;
    }
  }

  /** Whether a task still waits. It may have been canceled while files were read or a model was loaded. */
  private isWanted(waiting: WaitingTask): boolean {
    this.context.endCanceled();
    return this.waiting.includes(waiting);
  }

  /** The next task: one that restarts, else the first task of the owner who has used the device least. */
  private nextOf(left: ReadonlySet<WaitingTask>): WaitingTask {
    const usedMs = ({ task }: WaitingTask): number => this.context.turns.usedMsOf(task.owner);
    const restarted = [...left].find((waiting) => waiting.restartState);
    return restarted ?? [...left].reduce((first, other) => (usedMs(other) < usedMs(first) ? other : first));
  }

  /** Reads the files of a task. If that is not done by `until`, it goes on meanwhile, and a later call waits for it. */
  private async readUntil(until: number, waiting: WaitingTask): Promise<void> {
    if (waiting.files) return;
    const startedAt = performance.now();
    waiting.reading ??= this.readFiles(waiting).catch((error: unknown) => this.fail(waiting, error));
    this.context.report({ type: 'busy', id: waiting.task.id });
    do {
      const ms = Math.max(0, Math.min(watchMs, until - performance.now()));
      await Promise.race([waiting.reading, delay(ms, undefined, { ref: false })]);
    } while (!waiting.files && performance.now() < until && this.isWanted(waiting));
    this.context.turns.charge(waiting.task.owner, performance.now() - startedAt);
  }

  private async readFiles(waiting: WaitingTask): Promise<void> {
    waiting.files = await this.reader.read(waiting.task);
    // The task may have been canceled meanwhile.
    if (!this.waiting.includes(waiting)) this.remove(waiting);
  }

  /** Whether a task may begin beside the drawings. */
  private hasRoom(task: Task, files: TaskFiles): boolean {
    const { drawings, models } = this.context;
    if (drawings.length === 0) return true;
    const isAlone = task.alone || drawings.some((other) => other.task.alone);
    return (
      !isAlone &&
      models.hasRoom({ ...files, controlBytes: this.controls.bytesToAdd(files.controls, files.folder, task) })
    );
  }

  /**
   * Whether a task waits until drawings of other owners end, because these stand still while its model is loaded. It
   * waits for a drawing whose owner, at the end of it, will have used less device time than the task's owner after the
   * loading. So it waits for the time of loading its model at most, however many tasks other owners send.
   */
  private shouldWaitForOthers({ task, restartState }: WaitingTask, files: TaskFiles): boolean {
    const { models, turns, times, drawings } = this.context;
    if (restartState || keysOf(files).every((key) => models.has(key))) return false;
    const usedMs = turns.usedMsOf(task.owner) + times.meanMs(loading);
    return drawings.some(({ owner, msLeft }) => owner !== task.owner && turns.usedMsOf(owner) + msLeft < usedMs);
  }

  private async tryToBegin(waiting: WaitingTask, files: TaskFiles): Promise<void> {
    const startedAt = performance.now();
    const charge = (): void => this.context.turns.charge(waiting.task.owner, performance.now() - startedAt);
    this.keysBeingLoaded = keysOf(files);
    this.context.report({ type: 'busy', id: waiting.task.id });
    try {
      if (waiting.task.alone) await this.context.models.releaseIdle();
      const drawing = await this.begin(waiting, files).finally(charge);
      this.remove(waiting);
      this.context.begun(drawing);
    } catch (thrown) {
      const error = asOutOfMemory(thrown);
      const remedy = await this.context.remedy(error, waiting);
      if (remedy === 'restartAlone') waiting.task = { ...waiting.task, alone: true };
      else if (remedy === 'fail') this.fail(waiting, error);
    } finally {
      this.keysBeingLoaded = [];
    }
  }

  private async begin({ task, restartState }: WaitingTask, files: TaskFiles): Promise<Drawing> {
    const { models, times } = this.context;
    const model = models.get<LoadedModel>(files.modelKey) ?? (await this.load(task, files));
    const controls = await this.controls.load(files.controls, files.folder);
    const controlCallBytes = { unet: this.controls.callBytes(files.folder, task) };
    const calls = [
      [model, files.minCallBytes] as const,
      ...controls.map((control) => [control, controlCallBytes] as const),
    ];
    const startedAt = performance.now();
    const trajectories = await models.runCalls(calls, () =>
      model.instance.prepare({ ...pipelineRequest(task.request, controls), adapters: files.uses }),
    );
    return new Drawing(task, model, controls, trajectories, times, startedAt, restartState);
  }

  private async load({ model }: Task, { modelKey: key, weightBytes, mergedWeights }: TaskFiles): Promise<LoadedModel> {
    const { models, times } = this.context;
    const { device, intraOpNumThreads } = this.options;
    const startedAt = performance.now();
    const file = await mergedWeights?.();
    const options = { device, intraOpNumThreads, ...(file !== undefined && { changedWeights: file }) };
    const open = () => StableDiffusionPipeline.load(model.folder, options);
    const loaded = await models.load<LoadedModel>(key, weightBytes, open);
    times.recordWork(loading, performance.now() - startedAt);
    return loaded;
  }

  private fail(waiting: WaitingTask, error: unknown): void {
    if (this.remove(waiting)) this.context.failed(waiting.task, asOutOfMemory(error));
  }

  private remove(waiting: WaitingTask): boolean {
    const key = waiting.files?.modelKey;
    const isRemoved = removeFrom(this.waiting, waiting);
    if (key !== undefined && this.waiting.every(({ files }) => files?.modelKey !== key))
      this.context.adapters.discard(key);
    return isRemoved;
  }
}

/** Keys of the model and the ControlNets that a task is drawn with. */
const keysOf = ({ modelKey, controls }: TaskFiles): string[] => [modelKey, ...controls.map(({ source }) => source.key)];
