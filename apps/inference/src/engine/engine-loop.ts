import { setImmediate } from 'node:timers/promises';
import { AbortError, asOutOfMemory } from '@app/diffusion';
import { removeFrom } from '@app/process';
import { Adapters } from './adapters';
import { Admission, watchMs } from './admission';
import { type Batch, batchOf, inOrderOfTurns } from './batch';
import { CededMemory } from './ceded-memory';
import { CallTimes } from './call-times';
import { decodingOf, type Drawing, isCanceled, type Picture, rowsOf, type Task } from './drawing';
import { failureOf } from './failure';
import type { EngineMessage, ThreadOptions } from './engine-protocol';
import { Upscaling } from './upscaling';
import { controlRatio, fittingRows } from './memory';
import { Models } from './models';
import { Remedies } from './remedies';
import { Turns } from './turns';

/**
 * Draws the tasks of a device side by side. Each round of the loop
 * 1. ends tasks and drawings that are canceled,
 * 2. begins tasks that have room (`Admission`),
 * 3. leaves memory to another process that asks for it (`CededMemory`), and
 * 4. does a piece of work for the drawing whose turn it is (`inOrderOfTurns`): a call of the U-Net, which other
 *    drawings share where they can (`batchOf`), decoding of a picture, or upscaling of a tile.
 *
 * A cancel takes effect after the piece of work that is under way. `Remedies` handles failures.
 */
export class EngineLoop {
  private readonly drawings: Drawing[] = [];
  private readonly turns = new Turns();
  private readonly times: CallTimes;
  private readonly models: Models;
  private readonly remedies: Remedies;
  private readonly admission: Admission;
  private readonly upscaling: Upscaling;
  private readonly ceded: CededMemory;
  private running: Promise<void> | undefined;
  private isClosed = false;
  private lastPieceMs = 0;

  constructor(
    private readonly options: ThreadOptions,
    memoryBytes: number,
    private readonly report: (message: EngineMessage) => void,
  ) {
    const { drawings, turns } = this;
    const adapters = new Adapters(options.cacheDir);
    // Adapters are in the machine's memory. The models of a GPU are in its own.
    const budget = (): number => memoryBytes - (options.device === 'cpu' ? adapters.bytes : 0);
    const models = new Models(budget, () => this.modelsInUse(), report);
    const times = new CallTimes(options.device);
    const restartAlone = (drawing: Drawing): void => this.restartAlone(drawing);
    const end = (drawing: Drawing, error: unknown): void => this.end(drawing, error);
    const remedies = new Remedies(models, times, drawings, restartAlone, end);
    this.models = models;
    this.times = times;
    this.remedies = remedies;
    this.upscaling = new Upscaling(options, models, times, report);
    this.ceded = new CededMemory(models, drawings, report);
    this.admission = new Admission(options, {
      adapters,
      models,
      times,
      turns,
      drawings,
      endCanceled: () => this.endCanceled(),
      report,
      begun: (drawing) => this.begun(drawing),
      failed: (task, error) => this.failed(task, error),
      remedy: (error, waiting) => remedies.afterFailedStart(error, waiting),
    });
  }

  /** Adds a task to draw. Its progress and its end are reported, errors included. */
  add(task: Task): void {
    this.turns.taskAdded(task.owner);
    this.admission.add(task);
    this.running ??= this.run();
  }

  /** Leaves this many bytes to another process from now on, and reports when it may take them. */
  cede(bytes: number): void {
    if (this.isClosed) return;
    this.ceded.cede(bytes);
    this.running ??= this.run();
  }

  /** Ends all tasks and drawings, and releases all models. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
    await this.models.close();
  }

  private async run(): Promise<void> {
    for (;;) {
      // A macrotask, so that commands are received.
      await setImmediate();
      this.endCanceled();
      if (this.isClosed) break;
      await this.admission.admit(this.drawings.length > 0 ? this.lastPieceMs : watchMs);
      await this.ceded.makeRoom();
      if (this.admission.size + this.drawings.length === 0 && !this.ceded.isRequested) break;
      if (this.drawings.length > 0) await this.doNextPiece(inOrderOfTurns(this.drawings, this.turns));
    }
    this.running = undefined;
  }

  private endCanceled(): void {
    const isOver = (task: Task): boolean => this.isClosed || isCanceled(task);
    this.admission.endWhere(isOver);
    for (const drawing of this.drawings.filter(({ task }) => isOver(task))) this.end(drawing, new AbortError());
  }

  /** Does the next piece of work of the first of these drawings. */
  private async doNextPiece(ordered: readonly Drawing[]): Promise<void> {
    const [first] = ordered;
    this.turns.turnBegan(first.owner);
    if (first.toDecode) return this.decode(first, first.toDecode);
    if (first.toUpscale) return this.upscale(first);
    const denoising = ordered.filter((drawing) => drawing.denoising.length > 0);
    await this.step(batchOf(denoising, this.maxRows(first, denoising)));
  }

  /** Limit for the rows of the next call: what memory has room for, and no more than makes a row faster. */
  private maxRows(first: Drawing, denoising: readonly Drawing[]): number {
    const { model, callKey, pictures, controls, decodeBytes } = first;
    const rowBytes = Math.max(...denoising.filter((each) => each.callKey === callKey).map((each) => each.rowBytes));
    // Bytes that are kept for calls of its ControlNets count as in use, but this call may use them.
    const kept = [...new Set(controls)].reduce((sum, { keptBytes }) => sum + (keptBytes.unet ?? 0), 0);
    const bytes = this.models.bytesForUnet(model, { vaeDecoder: decodeBytes }) + kept;
    const fitting = fittingRows(bytes, rowBytes * (1 + controlRatio * controls.length), this.options.device);
    return Math.min(fitting, this.times.cheapestRows(callKey, pictures[0].rows));
  }

  private async step(batch: Batch): Promise<void> {
    const [{ drawing: first }] = batch;
    const { instance: pipeline } = first.model;
    const pictures = batch.flatMap((part) => part.pictures);
    const rows = rowsOf(pictures);
    const unet = pipeline.rowsOfCall(rows) * Math.max(...batch.map(({ drawing }) => drawing.rowBytes));
    const controls = first.controls.map((control) => [control, { unet: controlRatio * unet }] as const);
    const step = () => pipeline.step(pictures.map(({ trajectory }) => trajectory));
    const { ms, error } = await this.runAndCharge(batch, () =>
      this.models.runCalls([[first.model, { unet }], ...controls], step),
    );
    if (error !== undefined) return this.remedies.afterFailedCall(batch, error);
    this.times.recordCall(first.callKey, rows, ms);
    this.report({ type: 'stepped', drawings: batch.length, pictures: pictures.length, rows, stepMs: ms });
    for (const { drawing } of batch) drawing.isSuspect = false;
    this.reportProgress(batch.map(({ drawing }) => drawing));
  }

  private async decode(drawing: Drawing, picture: Picture): Promise<void> {
    const { model, task, callKey, decodeBytes } = drawing;
    const { ms, error } = await this.runAndCharge([{ drawing, pictures: [picture] }], async () => {
      const decode = () => model.instance.decode(picture.trajectory);
      picture.decoded = await this.models.runCalls([[model, { vaeDecoder: decodeBytes }]], decode);
    });
    if (error !== undefined) return this.remedies.afterFailedWork(drawing, error);
    this.times.recordWork(decodingOf(callKey), ms);
    if (!task.upscaler) picture.finished = picture.decoded;
    this.reportFinished(drawing);
  }

  /** Upscales a tile. Only one picture is upscaled at a time, as it takes much memory: it may be of another drawing. */
  private async upscale(next: Drawing): Promise<void> {
    const current = this.upscaling.pictureFor(next);
    const { drawing, picture } = current;
    const upscale = () => this.upscaling.upscaleNextTile(current);
    const { error } = await this.runAndCharge([{ drawing, pictures: [picture] }], upscale);
    if (error !== undefined) return this.remedies.afterFailedWork(drawing, error);
    this.reportFinished(drawing);
  }

  /** Does a piece of work for some drawings, and charges their owners by rows, also if the work fails. */
  private async runAndCharge(batch: Batch, work: () => Promise<void>): Promise<{ ms: number; error: unknown }> {
    const startedAt = performance.now();
    const error: unknown = await work().catch(asOutOfMemory);
    const ms = performance.now() - startedAt;
    this.lastPieceMs = ms;
    const rows = rowsOf(batch.flatMap(({ pictures }) => pictures));
    for (const { drawing, pictures } of batch) {
      const part = (ms * rowsOf(pictures)) / rows;
      this.turns.charge(drawing.owner, part);
      drawing.workedMs += ms;
      if (error === undefined) drawing.computeMs += part;
    }
    return { ms, error };
  }

  private begun(drawing: Drawing): void {
    const { task, model, pictures } = drawing;
    this.drawings.push(drawing);
    const scheduler = task.request.scheduler ?? model.instance.facts.scheduler;
    this.report({ type: 'started', id: task.id, promptChunks: pictures[0].trajectory.prompt.chunks, scheduler });
  }

  private reportFinished(drawing: Drawing): void {
    const { id } = drawing.task;
    for (const { index, decoded, finished } of drawing.takeFinished())
      this.report({ type: 'picture', id, index, picture: finished!, upscaled: finished !== decoded });
    if (!drawing.isDone) return;
    removeFrom(this.drawings, drawing);
    this.turns.taskEnded(drawing.owner);
    this.report({ type: 'done', id, computeMs: drawing.computeMs });
  }

  private reportProgress(drawings: readonly Drawing[]): void {
    const now = performance.now();
    for (const drawing of drawings) {
      try {
        const preview = drawing.preview(now);
        this.report({ type: 'progress', id: drawing.task.id, ...drawing.progress, ...(preview && { preview }) });
      } catch (error) {
        this.end(drawing, error);
      }
    }
  }

  private restartAlone(drawing: Drawing): void {
    removeFrom(this.drawings, drawing);
    this.upscaling.abandon(drawing);
    this.admission.addRestarted(drawing);
  }

  private end(drawing: Drawing, error: unknown): void {
    removeFrom(this.drawings, drawing);
    this.upscaling.abandon(drawing);
    this.failed(drawing.task, error, drawing.computeMs);
  }

  private failed(task: Task, error: unknown, computeMs = 0): void {
    this.turns.taskEnded(task.owner);
    this.report({ type: 'failed', id: task.id, computeMs, ...failureOf(error, task) });
  }

  private modelsInUse(): ReadonlySet<string> {
    const { upscaler } = this.upscaling;
    // Drawings whose pictures are all decoded need no model any more.
    const active = this.drawings.filter(({ pictures }) => pictures.some(({ decoded }) => !decoded));
    const drawn = active.flatMap(({ model, controls }) => [model, ...controls].map(({ key }) => key));
    return new Set([...drawn, ...this.admission.keysBeingLoaded, ...(upscaler ? [upscaler] : [])]);
  }
}
