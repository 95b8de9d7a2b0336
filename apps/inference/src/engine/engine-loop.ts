import { setImmediate } from 'node:timers/promises';
import { AbortError, asOutOfMemory } from '@app/diffusion';
import { removeFrom } from '@app/process';
import { Adapters } from './adapters';
import { Admission, watchMs } from './admission';
import { type Batch, batchOf, inOrderOfTurns } from './batch';
import { CallTimes } from './call-times';
import { DeviceTime } from './device-time';
import { failureOf } from './failure';
import type { EngineMessage, ThreadOptions } from './engine-protocol';
import { Safety } from './safety';
import { Upscaling } from './upscaling';
import { controlRatio, fittingRows } from './memory';
import { MemoryReservation } from './memory-reservation';
import { Models } from './models';
import { Remedies, type Verdict } from './remedies';
import { decodingOf, type EngineTask, isCanceled, type Picture, rowsTogether, type RunningTask } from './running-task';

/**
 * Draws the tasks of a device side by side. Each round of the loop
 * 1. ends tasks that are canceled,
 * 2. begins tasks that have room (`Admission`),
 * 3. leaves memory to another process that asks for it (`MemoryReservation`), and
 * 4. does a piece of work for the task whose turn it is (`inOrderOfTurns`): a call of the denoiser, which other tasks
 *    share where they can (`batchOf`), decoding of a picture and a look at it, or upscaling of a tile.
 *
 * A cancel takes effect after the piece of work that is under way. Of failed work `Remedies` decides.
 */
export class EngineLoop {
  private readonly running: RunningTask[] = [];
  private readonly deviceTime = new DeviceTime();
  private readonly times: CallTimes;
  private readonly models: Models;
  private readonly remedies: Remedies;
  private readonly admission: Admission;
  private readonly upscaling: Upscaling;
  private readonly safety: Safety;
  private readonly reservation: MemoryReservation;
  private rounds: Promise<void> | undefined;
  private isClosed = false;
  private lastPieceMs = 0;

  constructor(
    private readonly options: ThreadOptions,
    memoryBytes: number,
    private readonly report: (message: EngineMessage) => void,
  ) {
    const { running, deviceTime } = this;
    const adapters = new Adapters(options.cacheDir);
    // Adapters are in the machine's memory. The models of a GPU are in its own.
    const budget = (): number => memoryBytes - (options.device === 'cpu' ? adapters.bytes : 0);
    const models = (this.models = new Models(budget, () => this.modelsInUse(), report));
    const times = (this.times = new CallTimes(options.device));
    const remedies = (this.remedies = new Remedies(models, times));
    this.safety = new Safety(options, models, times);
    this.upscaling = new Upscaling(options, models, times, report);
    this.reservation = new MemoryReservation(models, running);
    this.admission = new Admission(options, { adapters, models, times, deviceTime, remedies, running, report });
  }

  /** Adds a task to draw. Its progress and its end are reported, errors included. */
  add(task: EngineTask): void {
    this.deviceTime.taskAdded(task.owner);
    this.admission.add(task);
    this.rounds ??= this.run();
  }

  /** Leaves this many bytes to another process from now on, and reports when it may take them. */
  reserve(bytes: number): void {
    if (this.isClosed) return;
    this.reservation.request(bytes);
    this.rounds ??= this.run();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.rounds;
    await this.models.close();
  }

  private async run(): Promise<void> {
    for (;;) {
      // A macrotask, so that commands are received.
      await setImmediate();
      this.endCanceled();
      if (this.isClosed) break;
      await this.admit();
      if (await this.reservation.makeRoom()) this.report({ type: 'reserved', bytes: this.models.reservedBytes });
      if (this.admission.size + this.running.length === 0 && !this.reservation.isRequested) break;
      if (this.running.length > 0) await this.doNextPiece(inOrderOfTurns(this.running, this.deviceTime));
    }
    this.rounds = undefined;
  }

  private endCanceled(): void {
    const isOver = (task: EngineTask): boolean => this.isClosed || isCanceled(task);
    for (const task of this.admission.removeWhere(isOver)) this.fail(task, new AbortError());
    for (const running of this.running.filter(({ task }) => isOver(task))) this.end(running, new AbortError());
  }

  private async admit(): Promise<void> {
    for await (const admitted of this.admission.admit(this.running.length > 0 ? this.lastPieceMs : watchMs)) {
      if (admitted && 'begun' in admitted) this.begun(admitted.begun);
      else if (admitted) this.fail(admitted.failed, admitted.error);
      this.endCanceled();
    }
  }

  private async doNextPiece(ordered: readonly RunningTask[]): Promise<void> {
    const [first] = ordered;
    this.deviceTime.turnBegan(first.owner);
    if (first.toDecode) return this.decode(first, first.toDecode);
    if (first.toUpscale) return this.upscale(first);
    const denoising = ordered.filter((running) => running.denoising.length > 0);
    await this.step(batchOf(denoising, this.maxRows(first, denoising)));
  }

  /** Limit for the rows of the next call: what memory has room for, and no more than makes a row faster. */
  private maxRows(first: RunningTask, denoising: readonly RunningTask[]): number {
    const { model, callKey, pictures, controls, decodeBytes } = first;
    const rowBytes = Math.max(...denoising.filter((each) => each.callKey === callKey).map((each) => each.rowBytes));
    // Bytes that are kept for calls of its ControlNets count as in use, but this call may use them.
    const kept = [...new Set(controls)].reduce((sum, { keptBytes }) => sum + (keptBytes.denoiser ?? 0), 0);
    const bytes = this.models.bytesForDenoiser(model, { vaeDecoder: decodeBytes }) + kept;
    const fitting = fittingRows(bytes, rowBytes * (1 + controlRatio * controls.length), this.options.device);
    return Math.min(fitting, this.times.cheapestRows(callKey, pictures[0].rows));
  }

  private async step(batch: Batch): Promise<void> {
    const [{ running: first }] = batch;
    const { instance: pipeline } = first.model;
    const pictures = batch.flatMap((part) => part.pictures);
    const rows = rowsTogether(pictures);
    const denoiser = pipeline.rowsOfCall(rows) * Math.max(...batch.map(({ running }) => running.rowBytes));
    const controls = first.controls.map((control) => [control, { denoiser: controlRatio * denoiser }] as const);
    const step = () => pipeline.step(pictures.map(({ trajectory }) => trajectory));
    const { ms, error } = await this.runAndCharge(batch, () =>
      this.models.runCalls([[first.model, { denoiser }], ...controls], step),
    );
    if (error !== undefined)
      return this.carryOut(await this.remedies.afterFailedCall(batch, error, this.running.length > 1), error);
    this.times.recordCall(first.callKey, rows, ms);
    this.report({ type: 'stepped', drawings: batch.length, pictures: pictures.length, rows, stepMs: ms });
    for (const { running } of batch) running.isSuspect = false;
    this.reportProgress(batch.map(({ running }) => running));
  }

  private async decode(running: RunningTask, picture: Picture): Promise<void> {
    const { model, task, callKey, decodeBytes } = running;
    const { error } = await this.runAndCharge([{ running, pictures: [picture] }], async () => {
      const startedAt = performance.now();
      const decode = () => model.instance.decode(picture.trajectory);
      const decoded = await this.models.runCalls([[model, { vaeDecoder: decodeBytes }]], decode);
      this.times.recordWork(decodingOf(callKey), performance.now() - startedAt);
      Object.assign(picture, { decoded, flagged: await this.safety.flags(task.safety, decoded) });
    });
    if (error !== undefined) return this.afterFailedWork(running, error);
    if (!task.upscaler || (picture.flagged && task.safety?.blocks)) picture.finished = picture.decoded;
    this.reportFinished(running);
  }

  /** Upscales a tile. Only one picture is upscaled at a time, as it takes much memory: it may be of another task. */
  private async upscale(next: RunningTask): Promise<void> {
    const current = this.upscaling.pictureFor(next);
    const { running, picture } = current;
    const upscale = () => this.upscaling.upscaleNextTile(current);
    const { error } = await this.runAndCharge([{ running, pictures: [picture] }], upscale);
    if (error !== undefined) return this.afterFailedWork(running, error);
    this.reportFinished(running);
  }

  /** Does a piece of work for some tasks, and charges their owners by rows, also if the work fails. */
  private async runAndCharge(batch: Batch, work: () => Promise<void>): Promise<{ ms: number; error: unknown }> {
    const startedAt = performance.now();
    const error: unknown = await work().catch(asOutOfMemory);
    const ms = performance.now() - startedAt;
    this.lastPieceMs = ms;
    const rows = rowsTogether(batch.flatMap(({ pictures }) => pictures));
    for (const { running, pictures } of batch) {
      const part = (ms * rowsTogether(pictures)) / rows;
      this.deviceTime.charge(running.owner, part);
      running.workedMs += ms;
      if (error === undefined) running.computeMs += part;
    }
    return { ms, error };
  }

  private begun(running: RunningTask): void {
    const { task, model, pictures } = running;
    this.running.push(running);
    const scheduler = task.request.scheduler ?? model.instance.facts.scheduler;
    this.report({ type: 'started', id: task.id, promptChunks: pictures[0].trajectory.prompt.chunks, scheduler });
  }

  private reportFinished(running: RunningTask): void {
    const { id } = running.task;
    for (const { index, decoded, finished, flagged = false } of running.takeFinished())
      this.report({ type: 'picture', id, index, picture: finished!, upscaled: finished !== decoded, flagged });
    if (!running.isDone) return;
    removeFrom(this.running, running);
    this.deviceTime.taskEnded(running.owner);
    this.report({ type: 'done', id, computeMs: running.computeMs });
  }

  private reportProgress(stepped: readonly RunningTask[]): void {
    const now = performance.now();
    for (const running of stepped) {
      try {
        const preview = running.preview(now);
        this.report({ type: 'progress', id: running.task.id, ...running.progress, ...(preview && { preview }) });
      } catch (error) {
        this.end(running, error);
      }
    }
  }

  private async afterFailedWork(running: RunningTask, error: unknown): Promise<void> {
    const remedy = await this.remedies.afterFailedWork(error, running, this.running.length > 1);
    this.carryOut([{ running, remedy }], error);
  }

  private carryOut(verdicts: readonly Verdict[], error: unknown): void {
    for (const { running, remedy } of verdicts)
      if (remedy === 'fail') this.end(running, error);
      else if (remedy === 'restartAlone') {
        this.leave(running);
        this.admission.addRestarted(running);
      }
  }

  private end(running: RunningTask, error: unknown): void {
    this.leave(running);
    this.fail(running.task, error, running.computeMs);
  }

  private leave(running: RunningTask): void {
    removeFrom(this.running, running);
    this.upscaling.abandon(running);
  }

  private fail(task: EngineTask, error: unknown, computeMs = 0): void {
    this.deviceTime.taskEnded(task.owner);
    this.report({ type: 'failed', id: task.id, computeMs, ...failureOf(error, task) });
  }

  private modelsInUse(): ReadonlySet<string> {
    const drawn = this.running.flatMap(({ modelKeys }) => modelKeys);
    return new Set([...drawn, ...this.admission.keysBeingLoaded, ...this.upscaling.modelKeys]);
  }
}
