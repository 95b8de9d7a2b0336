import { setTimeout as delay } from 'node:timers/promises';
import { asOutOfMemory, type Conditioning, encodeTexts } from '@app/diffusion';
import { removeFrom } from '@app/process';
import type { Adapters } from './adapters';
import { ControlNets } from './control-nets';
import type { CallTimes } from './call-times';
import type { DeviceTime } from './device-time';
import type { EngineMessage, ThreadOptions } from './engine-protocol';
import { loading, ModelLoader } from './model-loader';
import type { Models } from './models';
import type { MemoryNeeder, Remedies } from './remedies';
import { type EngineTask, pipelineRequest, type RestartState, RunningTask } from './running-task';
import { type TaskNeeds, TaskReader } from './task-reader';

/** Milliseconds between two checks for cancels while files are read. */
export const watchMs = 100;

interface WaitingTask extends MemoryNeeder {
  /** State of the task when it ran before, if it is restarted. */
  restartState?: RestartState;
  reading?: Promise<void>;
  /** Contents of its files, once they are read, or why they cannot be. */
  needs?: TaskNeeds;
  error?: unknown;
  /** Its texts, once they are encoded. */
  texts?: Conditioning;
}

/** What became of a task that waited. */
export type Admitted = { begun: RunningTask } | { failed: EngineTask; error: unknown };

interface EngineParts {
  adapters: Adapters;
  models: Models;
  times: CallTimes;
  deviceTime: DeviceTime;
  remedies: Remedies;
  running: readonly RunningTask[];
  report: (message: EngineMessage) => void;
}

/**
 * The tasks that wait. Each takes three steps until it runs: its files are read, between the calls of those that run;
 * its model is loaded; its texts are encoded. The owner who has used the device least goes first. A task that has no
 * room beside the models in use holds up those after it, because otherwise they could keep it waiting for ever.
 */
export class Admission {
  private readonly waiting: WaitingTask[] = [];
  private readonly controls: ControlNets;
  private readonly reader: TaskReader;
  private readonly loader: ModelLoader;
  /** Keys of the model and the ControlNets of the task that is just beginning. None of them may be released. */
  keysBeingLoaded: readonly string[] = [];

  constructor(
    private readonly options: ThreadOptions,
    private readonly engine: EngineParts,
  ) {
    this.controls = new ControlNets(options, engine.models);
    this.loader = new ModelLoader(options, engine.models, engine.times);
    this.reader = new TaskReader(options, engine.models, engine.adapters, this.controls);
  }

  get size(): number {
    return this.waiting.length;
  }

  add(task: EngineTask): void {
    this.waiting.push({ task, timesOutOfMemory: 0 });
  }

  /** Adds a task that ran and has to restart. It goes before all other tasks, and has nothing beside it. */
  addRestarted({ task, restartState }: RunningTask): void {
    const restarted = this.waiting.filter((waiting) => waiting.restartState).length;
    this.waiting.splice(restarted, 0, { task: { ...task, alone: true }, restartState, timesOutOfMemory: 0 });
  }

  /** Removes tasks that are canceled. @returns these */
  removeWhere(isOver: (task: EngineTask) => boolean): EngineTask[] {
    const over = this.waiting.filter(({ task }) => isOver(task));
    for (const waiting of over) this.remove(waiting);
    return over.map(({ task }) => task);
  }

  /**
   * Begins the tasks that have room now.
   * @param ms time for reading files and for beginning more than one task. Reading consists of many small pieces of
   * work; without this time each of them would wait for a call of the device.
   * @returns what becomes of each, at once; undefined whenever time has passed in which tasks may have been canceled,
   * which the caller removes before it goes on
   */
  async *admit(ms: number): AsyncGenerator<Admitted | undefined> {
    const until = performance.now() + ms;
    const left = new Set(this.waiting);
    let hasBegun = false;
    while (left.size > 0 && !(hasBegun && performance.now() >= until)) {
      const waiting = this.nextOf(left);
      left.delete(waiting);
      yield undefined;
      if (!this.waiting.includes(waiting)) continue;
      yield* this.readUntil(until, waiting);
      if (!this.waiting.includes(waiting)) continue;
      const { needs, error } = waiting;
      if (error !== undefined) yield this.failed(waiting, asOutOfMemory(error));
      if (!needs) continue;
      if (!this.hasRoom(waiting, needs)) return;
      if (this.shouldWaitForOthers(waiting, needs)) continue;
      yield await this.begin(waiting, needs);
      hasBegun = true;
    }
  }

  /** The next task: one that restarts, else the first task of the owner who has used the device least. */
  private nextOf(left: ReadonlySet<WaitingTask>): WaitingTask {
    const usedMs = ({ task }: WaitingTask): number => this.engine.deviceTime.usedMsOf(task.owner);
    const restarted = [...left].find((waiting) => waiting.restartState);
    return restarted ?? [...left].reduce((first, other) => (usedMs(other) < usedMs(first) ? other : first));
  }

  /** Reads the files of a task. If that is not done by `until`, it goes on meanwhile, and a later call waits for it. */
  private async *readUntil(until: number, waiting: WaitingTask): AsyncGenerator<undefined> {
    const isRead = (): boolean => waiting.needs !== undefined || waiting.error !== undefined;
    if (isRead()) return;
    const startedAt = performance.now();
    waiting.reading ??= this.readFiles(waiting);
    this.engine.report({ type: 'busy', id: waiting.task.id });
    do {
      const ms = Math.max(0, Math.min(watchMs, until - performance.now()));
      await Promise.race([waiting.reading, delay(ms, undefined, { ref: false })]);
      yield undefined;
    } while (!isRead() && performance.now() < until && this.waiting.includes(waiting));
    this.engine.deviceTime.charge(waiting.task.owner, performance.now() - startedAt);
  }

  private async readFiles(waiting: WaitingTask): Promise<void> {
    try {
      waiting.needs = await this.reader.read(waiting.task);
    } catch (error) {
      waiting.error = error;
    }
    // The task may have been canceled meanwhile.
    if (!this.waiting.includes(waiting)) this.remove(waiting);
  }

  private hasRoom({ task, texts }: WaitingTask, needs: TaskNeeds): boolean {
    const { running, models } = this.engine;
    if (running.length === 0) return true;
    const isAlone = task.alone || running.some((other) => other.task.alone);
    return (
      !isAlone &&
      (texts !== undefined || models.hasRoom(needs.texts)) &&
      models.hasRoom({ ...needs, controlBytes: this.controls.bytesToAdd(needs.controls, needs.folder, task) })
    );
  }

  /**
   * Whether a task waits until tasks of other owners end, because these stand still while its model is loaded. It waits
   * for one whose owner, at the end of it, will have used less device time than the task's owner after the loading. So
   * it waits for the time of loading its model at most, however many tasks other owners send.
   */
  private shouldWaitForOthers({ task, restartState }: WaitingTask, needs: TaskNeeds): boolean {
    const { models, deviceTime, times, running } = this.engine;
    if (restartState || keysOf(needs).every((key) => models.has(key))) return false;
    const usedMs = deviceTime.usedMsOf(task.owner) + times.meanMs(loading);
    return running.some(({ owner, msLeft }) => owner !== task.owner && deviceTime.usedMsOf(owner) + msLeft < usedMs);
  }

  private async begin(waiting: WaitingTask, needs: TaskNeeds): Promise<Admitted | undefined> {
    const { models, deviceTime, remedies, running, report } = this.engine;
    const startedAt = performance.now();
    const charge = (): void => deviceTime.charge(waiting.task.owner, performance.now() - startedAt);
    report({ type: 'busy', id: waiting.task.id });
    try {
      if (waiting.task.alone) await models.releaseIdle();
      const begun = await this.prepare(waiting, needs).finally(charge);
      this.remove(waiting);
      return { begun };
    } catch (thrown) {
      const error = asOutOfMemory(thrown);
      const remedy = await remedies.afterFailedWork(error, waiting, running.length > 0);
      if (remedy === 'restartAlone') waiting.task = { ...waiting.task, alone: true };
      return remedy === 'fail' ? this.failed(waiting, error) : undefined;
    } finally {
      this.keysBeingLoaded = [];
    }
  }

  private async prepare(waiting: WaitingTask, needs: TaskNeeds): Promise<RunningTask> {
    const { task, restartState } = waiting;
    const { models, times } = this.engine;
    const encodingAt = performance.now();
    // A task that is begun again needs no text encoder any more.
    const texts = (waiting.texts ??= await this.encode(task, needs));
    const encodingMs = performance.now() - encodingAt;
    this.keysBeingLoaded = [needs.modelKey, ...needs.controls.map(({ source }) => source.key)];
    const model = await this.loader.model(needs, texts);
    const controls = await this.controls.load(needs.controls, needs.folder);
    const controlCallBytes = { denoiser: this.controls.callBytes(needs.folder, task) };
    const calls = [
      [model, needs.minCallBytes] as const,
      ...controls.map((control) => [control, controlCallBytes] as const),
    ];
    const startedAt = performance.now() - encodingMs;
    const request = { ...pipelineRequest(task.request, controls), adapters: needs.uses };
    const trajectories = await models.runCalls(calls, () => model.instance.prepare(request, texts));
    return new RunningTask({ task, model, controls, trajectories, times, startedAt, restartState });
  }

  private async encode(task: EngineTask, needs: TaskNeeds): Promise<Conditioning> {
    const { modelKey, minCallBytes } = needs.texts;
    this.keysBeingLoaded = [modelKey];
    const conditioner = await this.loader.conditioner(needs);
    const request = { ...pipelineRequest({ ...task.request, control: [] }, []), adapters: needs.uses };
    return this.engine.models.runCalls([[conditioner, minCallBytes]], () =>
      encodeTexts(needs.folder, conditioner.instance, request),
    );
  }

  private failed(waiting: WaitingTask, error: unknown): Admitted {
    this.remove(waiting);
    return { failed: waiting.task, error };
  }

  private remove(waiting: WaitingTask): void {
    const key = waiting.needs?.modelKey;
    removeFrom(this.waiting, waiting);
    if (key !== undefined && this.waiting.every(({ needs }) => needs?.modelKey !== key))
      this.engine.adapters.discard(key);
  }
}

const keysOf = ({ modelKey, texts, controls }: TaskNeeds): string[] => [
  ...[texts.modelKey, modelKey],
  ...controls.map(({ source }) => source.key),
];
