import { setImmediate } from 'node:timers/promises';
import { AbortError, asOutOfMemory, OutOfMemoryError, providerOf } from '@app/diffusion';
import { removeFrom } from '@app/process';
import { Admission, type Remedy, type ThreadOptions } from './admission';
import { type Batch, batchOf, inTurn } from './batch';
import { CededMemory } from './ceded-memory';
import { CallTimes } from './call-times';
import { type DrawingInProgress, isCanceled, type Picture, rowsOf, type Task } from './drawing';
import { failureOf } from './engine-errors';
import type { EngineMessage } from './engine-protocol';
import { Enlarging } from './enlarging';
import { decodeBytes, fittingRows } from './memory';
import { Models } from './models';
import { Turns } from './turns';

/** How long files are read between two looks at what is canceled, if nothing is drawn. */
const watchMs = 100;

/**
 * Draws the tasks of a device side by side. Each round of its loop lets commands in, begins the tasks that have room
 * (`Admission`), and does one piece of work for the drawing that goes first (`inTurn`): a call of the U-Net with all that
 * may share it (`batchOf`), decoding a picture, or enlarging a tile. A cancel waits for one piece. A call for which memory
 * runs out is made again with half of its rows, down to one picture. If that does not help, the first remedy is tried
 * that is left: to release idle models; to begin the drawing anew with nothing beside it; to let it fail.
 */
export class EngineLoop {
  private readonly drawings: DrawingInProgress[] = [];
  private readonly turns = new Turns();
  private readonly times: CallTimes;
  private readonly models: Models;
  private readonly admission: Admission;
  private readonly enlarging: Enlarging;
  private readonly ceded: CededMemory;
  private running: Promise<void> | undefined;
  private isClosed = false;
  private lastPieceMs = 0;

  constructor(
    private readonly options: ThreadOptions,
    memoryBytes: number,
    private readonly report: (message: EngineMessage) => void,
  ) {
    const times = (this.times = new CallTimes(providerOf(options.device) === 'cpu'));
    // Adapters are in the memory of the machine, which is the processor's.
    const budget = (): number => memoryBytes - (options.device === 'cpu' ? this.admission.adapterBytes : 0);
    const models = (this.models = new Models(budget, () => this.modelsInUse(), report));
    this.enlarging = new Enlarging(options, models, times, report);
    this.ceded = new CededMemory(models, this.drawings, report);
    this.admission = new Admission(options, {
      ...{ models, times, turns: this.turns, drawings: this.drawings },
      endCanceled: () => this.endCanceled(),
      busy: ({ id }) => report({ type: 'busy', id }),
      begun: (drawing) => this.begun(drawing),
      failed: (task, error) => this.failed(task, error),
      remedy: (error, task, key) => this.remedy(error, task, this.drawings.length > 0, key),
    });
  }

  /** Draws, and reports how it went; never throws. */
  add(task: Task): void {
    this.turns.taskAdded(task.owner);
    this.admission.add(task);
    this.running ??= this.run();
  }

  /** Leaves so many bytes to another process from now on, and reports when it may take them. */
  cede(bytes: number): void {
    this.ceded.cede(bytes);
    this.running ??= this.run();
  }

  /** Gives up what is being drawn, and releases every model. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
    await this.models.close();
  }

  private async run(): Promise<void> {
    for (;;) {
      await setImmediate();
      this.endCanceled();
      await this.admission.admit(this.drawings.length > 0 ? this.lastPieceMs : watchMs);
      await this.ceded.makeRoom();
      if (this.admission.size + this.drawings.length === 0) break;
      if (this.drawings.length > 0) await this.doNextPiece(inTurn(this.drawings, this.turns));
    }
    this.running = undefined;
  }

  private endCanceled(): void {
    const isOver = (task: Task): boolean => this.isClosed || isCanceled(task);
    this.admission.endWhere(isOver);
    for (const drawing of this.drawings.filter(({ task }) => isOver(task))) this.end(drawing, new AbortError());
  }

  /** Does the next piece of work of the first of these. */
  private async doNextPiece(ordered: readonly DrawingInProgress[]): Promise<void> {
    const [first] = ordered;
    this.turns.turnBegan(first.owner);
    if (first.toDecode) return this.decode(first, first.toDecode);
    if (first.toEnlarge) return this.enlarge(first);
    const denoising = ordered.filter((drawing) => drawing.denoising.length > 0);
    await this.step(batchOf(denoising, this.mostRows(first, denoising)));
  }

  /** Rows that the next call may have: as many as fit into memory, and no more than make a row cheaper. */
  private mostRows(first: DrawingInProgress, drawings: readonly DrawingInProgress[]): number {
    const { model, task, callKey, pictures } = first;
    const rowBytes = Math.max(...drawings.filter((each) => each.callKey === callKey).map((each) => each.rowBytes));
    const vaeDecoder = decodeBytes(model.pipeline.facts.widths, task.request);
    const fitting = fittingRows(this.models.bytesForUnet(model, { vaeDecoder }), rowBytes, this.options.device);
    return Math.min(fitting, this.times.mostRows(callKey, pictures[0].rows));
  }

  private async step(batch: Batch): Promise<void> {
    const [{ drawing: first }] = batch;
    const pictures = batch.flatMap((part) => part.pictures);
    const [rows, unet] = [rowsOf(pictures), first.model.pipeline];
    const rowsOfCall = unet.rowsOfCall(rows);
    const { ms, error } = await this.doPiece(batch, async () => {
      const bytes = rowsOfCall * Math.max(...batch.map(({ drawing }) => drawing.rowBytes));
      await this.models.reserve(first.model, { unet: bytes });
      for (const control of first.controls) await this.models.reserve(control, { unet: bytes / 2 });
      await unet.step(pictures.map(({ trajectory }) => trajectory));
    });
    if (error !== undefined)
      return this.stepFailed(batch, error, () => this.times.halve(first.callKey, rows, pictures[0].rows));
    this.times.noteCall(first.callKey, rowsOfCall, ms);
    this.report({ type: 'stepped', drawings: batch.length, pictures: pictures.length, rows, stepMs: ms });
    for (const { drawing } of batch) drawing.isSuspect = false;
    this.reportProgress(batch.map(({ drawing }) => drawing));
  }

  private async decode(drawing: DrawingInProgress, picture: Picture): Promise<void> {
    const { model, task, callKey } = drawing;
    const { ms, error } = await this.doPiece([{ drawing, pictures: [picture] }], async () => {
      await this.models.reserve(model, { vaeDecoder: decodeBytes(model.pipeline.facts.widths, task.request) });
      picture.image = await model.pipeline.decode(picture.trajectory);
    });
    if (error !== undefined) return this.pieceFailed(drawing, error);
    this.times.note(`decoding ${callKey}`, ms);
    if (!task.upscaler) picture.finished = picture.image;
    this.reportFinished(drawing);
  }

  /** Enlarges a tile. One picture is enlarged at a time, whosever turn it is, because each takes much memory. */
  private async enlarge(next: DrawingInProgress): Promise<void> {
    const { drawing, picture } = this.enlarging.currentOr(next);
    const { error } = await this.doPiece([{ drawing, pictures: [picture] }], () => this.enlarging.goOn());
    if (error !== undefined) return this.pieceFailed(drawing, error);
    this.reportFinished(drawing);
  }

  /** Does a piece of work for some drawings, and charges each owner its rows' part of the time, even if it fails. */
  private async doPiece(batch: Batch, work: () => Promise<void>): Promise<{ ms: number; error: unknown }> {
    const startedAt = performance.now();
    const error: unknown = await work().catch(asOutOfMemory);
    const ms = (this.lastPieceMs = performance.now() - startedAt);
    const rows = rowsOf(batch.flatMap(({ pictures }) => pictures));
    for (const { drawing, pictures } of batch) {
      const own = (ms * rowsOf(pictures)) / rows;
      this.turns.charge(drawing.owner, own);
      if (error === undefined) drawing.computeMs += own;
    }
    return { ms, error };
  }

  /**
   * A call that ran out of memory is made again with half of its rows, another one by each of its drawings alone, to find
   * the one at fault. A drawing whose pictures the failure left in the middle of a step begins anew.
   */
  private async stepFailed(batch: Batch, error: unknown, halve: () => boolean): Promise<void> {
    const spoilt = batch.filter(({ drawing }) => drawing.pictures.some(({ trajectory }) => trajectory.isSpoilt));
    const hasMadeRoom = spoilt.length > 0 && (await this.models.releaseIdle());
    for (const { drawing } of spoilt)
      if (hasMadeRoom || !drawing.task.alone) this.drawAlone(drawing);
      else this.end(drawing, error);
    if (spoilt.length > 0 || (error instanceof OutOfMemoryError && halve())) return;
    if (batch.length === 1) await this.pieceFailed(batch[0].drawing, error);
    else for (const { drawing } of batch) drawing.isSuspect = true;
  }

  private async pieceFailed(drawing: DrawingInProgress, error: unknown): Promise<void> {
    const remedy = await this.remedy(error, drawing.task, this.drawings.length > 1);
    if (remedy === 'alone') this.drawAlone(drawing);
    else if (remedy === 'end') this.end(drawing, error);
  }

  /** The remedy that is left when a piece of work failed: none if it was not for want of memory. */
  private async remedy(error: unknown, { alone }: Task, hasOthers: boolean, key?: string): Promise<Remedy> {
    if (!(asOutOfMemory(error) instanceof OutOfMemoryError)) return 'end';
    if (await this.models.releaseIdle(key)) return 'again';
    return hasOthers && !alone ? 'alone' : 'end';
  }

  private begun(drawing: DrawingInProgress): void {
    const { task, model, pictures } = drawing;
    this.drawings.push(drawing);
    const scheduler = task.request.scheduler ?? model.pipeline.facts.scheduler;
    this.report({ type: 'started', id: task.id, promptChunks: pictures[0].trajectory.prompt.chunks, scheduler });
  }

  private reportFinished(drawing: DrawingInProgress): void {
    const { id } = drawing.task;
    for (const { index, image, finished } of drawing.takeFinished())
      this.report({ type: 'picture', id, index, picture: finished!, upscaled: finished !== image });
    if (!drawing.isDone) return;
    removeFrom(this.drawings, drawing);
    this.turns.taskEnded(drawing.owner);
    this.report({ type: 'done', id, computeMs: drawing.computeMs });
  }

  /** Reports how far these are, with at most one preview: of the drawing that has waited longest for one. */
  private reportProgress(drawings: readonly DrawingInProgress[]): void {
    const now = performance.now();
    const dueAt = (drawing: DrawingInProgress): number => drawing.previewDueAt(now) ?? Infinity;
    const [due] = drawings.toSorted((a, b) => dueAt(a) - dueAt(b));
    for (const drawing of drawings)
      try {
        const preview = drawing === due && dueAt(due) <= now && { preview: drawing.preview(now) };
        this.report({ type: 'progress', id: drawing.task.id, ...drawing.progress, ...preview });
      } catch (error) {
        this.end(drawing, error);
      }
  }

  private drawAlone(drawing: DrawingInProgress): void {
    removeFrom(this.drawings, drawing);
    this.enlarging.forget(drawing);
    this.admission.addAlone(drawing);
  }

  private end(drawing: DrawingInProgress, error: unknown): void {
    removeFrom(this.drawings, drawing);
    this.enlarging.forget(drawing);
    this.failed(drawing.task, error);
  }

  private failed(task: Task, error: unknown): void {
    this.turns.taskEnded(task.owner);
    this.report({ type: 'failed', id: task.id, ...failureOf(error, task) });
  }

  private modelsInUse(): ReadonlySet<string> {
    const { upscaler } = this.enlarging;
    const drawn = this.drawings.flatMap(({ model, controls }) => [model, ...controls].map(({ key }) => key));
    return new Set([...drawn, ...this.admission.keysBeingLoaded, ...(upscaler ? [upscaler] : [])]);
  }
}
