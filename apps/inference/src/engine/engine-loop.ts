import { setImmediate } from 'node:timers/promises';
import {
  AbortError,
  asOutOfMemory,
  type Device,
  hasCallsInPowersOfTwo,
  OutOfMemoryError,
  powerOfTwoUpTo,
  providerOf,
} from '@app/diffusion';
import { removeFrom } from '@app/process';
import { Admission } from './admission';
import { type Batch, batchOf, inTurn } from './batch';
import { CallTimes } from './call-times';
import { type DrawingInProgress, isCanceled, type Picture, type Task } from './drawing';
import { failureOf } from './engine-errors';
import type { EngineMessage, EngineSettings } from './engine-protocol';
import { Enlarging } from './enlarging';
import { bytesPerRow, decodeBytes } from './memory';
import { Models } from './models';
import { Turns } from './turns';

type OwnBatch = Batch<DrawingInProgress>;

/** How long files are read between two looks at what is canceled, while nothing is drawn. */
const watchMs = 100;

/**
 * Draws the tasks of a device side by side. Each round of its loop lets commands in, begins what has room, and makes
 * one piece of work of the owner whose turn it is: a call of the U-Net with every picture that may share it, decoding a
 * picture, or enlarging a tile of one. Between two rounds nothing is under way, so a cancel waits for one piece.
 */
export class EngineLoop {
  private readonly drawings: DrawingInProgress[] = [];
  private readonly turns = new Turns();
  private readonly times: CallTimes;
  private readonly models: Models;
  private readonly admission: Admission;
  private readonly enlarging: Enlarging;
  private running: Promise<void> | undefined;
  private isClosed = false;
  /** What the last piece of work took. */
  private pieceMs = 0;

  constructor(
    private readonly options: Pick<EngineSettings, 'intraOpNumThreads' | 'cacheDir'> & { device: Device },
    memoryBytes: number,
    private readonly report: (message: EngineMessage) => void,
  ) {
    const { turns, drawings } = this;
    this.times = new CallTimes(providerOf(options.device) === 'cpu');
    this.models = new Models(memoryBytes, () => this.modelsInUse(), report);
    this.enlarging = new Enlarging(options, this.models, this.times, report);
    this.admission = new Admission({
      ...options,
      ...{ models: this.models, turns, times: this.times, report },
      drawings: () => drawings,
      begun: (drawing) => this.begun(drawing),
      failed: (task, error) => this.failed(task, error),
      nextTry: (error, isAlone) => this.nextTry(error, isAlone, drawings.length > 0),
    });
  }

  /** Draws, and reports how it went; never throws. */
  add(task: Task): void {
    this.turns.come(task.owner);
    this.admission.add(task);
    this.running ??= this.run().finally(() => (this.running = undefined));
  }

  /** Gives up what is being drawn, and releases every model. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
    await this.admission.close();
    await this.models.close();
  }

  private async run(): Promise<void> {
    while (this.admission.size + this.drawings.length > 0) {
      await setImmediate();
      this.endCanceled();
      await this.admission.admit();
      if (this.drawings.length > 0) await this.goOn();
      await this.admission.goOnReading(this.drawings.length > 0 ? this.pieceMs : watchMs);
    }
  }

  private endCanceled(): void {
    this.admission.endCanceled(this.isClosed);
    for (const drawing of this.drawings.filter(({ task }) => this.isClosed || isCanceled(task)))
      this.end(drawing, new AbortError());
  }

  /** The next piece of work of the drawing that goes first. */
  private async goOn(): Promise<void> {
    const ordered = inTurn(this.drawings, this.turns);
    const [first] = ordered;
    const startedAt = performance.now();
    const { toDecode, toEnlarge } = first;
    if (toDecode) await this.decode(first, toDecode);
    else if (toEnlarge) await this.enlarge(first, toEnlarge);
    else await this.step(ordered.filter(({ denoising }) => denoising.length > 0));
    this.pieceMs = performance.now() - startedAt;
  }

  private async step(ordered: readonly DrawingInProgress[]): Promise<void> {
    const [{ model, task }] = ordered;
    const { widths } = model.pipeline.facts;
    const batch = batchOf(ordered, this.mostRows(ordered[0])) as OwnBatch;
    const pictures = picturesOf(batch);
    const rows = rowsOf(pictures);
    const rowsOfCall = model.pipeline.rowsOfCall(rows);
    const kind = kindOfCall(batch);
    const startedAt = performance.now();
    let error: unknown;
    try {
      await this.models.reserve(model, { unet: rowsOfCall * bytesPerRow(widths, task.request) });
      await model.pipeline.step(pictures.map(({ trajectory }) => trajectory));
    } catch (failure) {
      error = asOutOfMemory(failure);
    }
    const stepMs = performance.now() - startedAt;
    for (const { drawing, pictures: own } of batch)
      this.charge(drawing, (stepMs * rowsOf(own)) / rows, error === undefined);
    if (error !== undefined) return this.stepFailed(batch, error);
    this.times.noteCall(kind, rowsOfCall, stepMs);
    this.report({ type: 'stepped', drawings: batch.length, pictures: pictures.length, rows, stepMs });
    for (const { drawing } of batch) drawing.isSuspect = false;
    this.tell(batch.map(({ drawing }) => drawing));
  }

  /** Rows of the next call with this drawing: what memory allows, and what makes a row cheaper. */
  private mostRows({ model, task, kind, ranks, pictures: [{ rows }] }: DrawingInProgress): number {
    const { widths } = model.pipeline.facts;
    const bytes = this.models.bytesForUnet(model, { vaeDecoder: decodeBytes(widths, task.request) });
    const fitting = Math.max(1, Math.floor(bytes / bytesPerRow(widths, task.request)));
    const inCall = hasCallsInPowersOfTwo(this.options.device) ? powerOfTwoUpTo(fitting) : fitting;
    return Math.min(inCall, this.times.mostRows(`${kind} ${ranks}`, rows));
  }

  private async decode(drawing: DrawingInProgress, picture: Picture): Promise<void> {
    const { model, task, kind } = drawing;
    await this.piece(drawing, `decoding ${kind}`, async () => {
      await this.models.reserve(model, { vaeDecoder: decodeBytes(model.pipeline.facts.widths, task.request) });
      picture.image = await model.pipeline.decode(picture.trajectory);
      if (!task.upscaler) this.handOn(drawing);
    });
  }

  /** Enlarges a tile. One picture is enlarged at a time, whoever's turn it is, because each takes much memory. */
  private async enlarge(drawing: DrawingInProgress, picture: Picture): Promise<void> {
    const enlarged = this.enlarging.drawing ?? drawing;
    await this.piece(enlarged, undefined, async () => {
      const image = await this.enlarging.goOn(enlarged, enlarged === drawing ? picture : enlarged.toEnlarge!);
      if (image) this.handOn(enlarged, image);
    });
  }

  /** Does a piece of work of one drawing, which its owner is charged for also if it fails. */
  private async piece(drawing: DrawingInProgress, name: string | undefined, work: () => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    let error: unknown;
    await work().catch((failure: unknown) => (error = asOutOfMemory(failure)));
    const ms = performance.now() - startedAt;
    this.charge(drawing, ms, error === undefined);
    if (error !== undefined) await this.pieceFailed(drawing, error);
    else if (name !== undefined) this.times.note(name, ms);
    if (drawing.isDone && removeFrom(this.drawings, drawing)) {
      this.turns.leave(drawing.owner);
      this.report({ type: 'done', id: drawing.task.id, computeMs: drawing.computeMs });
    }
  }

  private charge(drawing: DrawingInProgress, ms: number, isOfUse: boolean): void {
    this.turns.charge(drawing.owner, ms);
    if (isOfUse) drawing.computeMs += ms;
  }

  /**
   * A call that ran out of memory is made again with half of its rows. One that failed otherwise is made again by each
   * of its drawings alone, to find the one at fault. What is left in the middle of a step is drawn anew.
   */
  private async stepFailed(batch: OwnBatch, error: unknown): Promise<void> {
    const pictures = picturesOf(batch);
    const [{ drawing: first }] = batch;
    const spoilt = batch.filter(({ drawing }) => drawing.pictures.some(({ trajectory }) => trajectory.isSpoilt));
    if (spoilt.length > 0) {
      const hasMadeRoom = await this.models.releaseIdle();
      for (const { drawing } of spoilt)
        if (hasMadeRoom || !drawing.task.alone) this.drawAlone(drawing);
        else this.end(drawing, error);
    } else if (
      error instanceof OutOfMemoryError &&
      this.times.halve(kindOfCall(batch), rowsOf(pictures), first.pictures[0].rows)
    )
      return;
    else if (batch.length > 1) for (const { drawing } of batch) drawing.isSuspect = true;
    else await this.pieceFailed(first, error);
  }

  private async pieceFailed(drawing: DrawingInProgress, error: unknown): Promise<void> {
    const next = await this.nextTry(error, drawing.task.alone ?? false, this.drawings.length > 1);
    if (next === 'alone') this.drawAlone(drawing);
    else if (next === 'end') this.end(drawing, error);
  }

  /** What follows a failure: without memory it is tried without idle models, then with nothing drawn beside it. */
  private async nextTry(error: unknown, isAlone: boolean, hasOthers: boolean): Promise<'again' | 'alone' | 'end'> {
    if (!(asOutOfMemory(error) instanceof OutOfMemoryError)) return 'end';
    if (await this.models.releaseIdle()) return 'again';
    return hasOthers && !isAlone ? 'alone' : 'end';
  }

  private begun(drawing: DrawingInProgress): void {
    const { task, model, pictures } = drawing;
    this.drawings.push(drawing);
    const { chunks: promptChunks } = pictures[0].trajectory.prompt;
    const scheduler = task.request.scheduler ?? model.pipeline.facts.scheduler;
    this.report({ type: 'started', id: task.id, promptChunks, scheduler });
  }

  private handOn(drawing: DrawingInProgress, enlarged?: NonNullable<Picture['image']>): void {
    const { id } = drawing.task;
    for (const ready of drawing.handOn(enlarged)) this.report({ type: 'picture', id, ...ready });
  }

  /** Tells how far these are, with at most one preview: of the drawing that has waited longest for one. */
  private tell(drawings: readonly DrawingInProgress[]): void {
    const now = performance.now();
    const [due] = drawings
      .filter((drawing) => drawing.previewDueMs(now) >= 0)
      .sort((a, b) => b.previewDueMs(now) - a.previewDueMs(now));
    for (const drawing of drawings)
      try {
        const preview = drawing === due && { preview: drawing.preview(now) };
        this.report({ type: 'progress', id: drawing.task.id, ...drawing.progress, ...preview });
      } catch (error) {
        this.end(drawing, error);
      }
  }

  private drawAlone(drawing: DrawingInProgress): void {
    if (!removeFrom(this.drawings, drawing)) return;
    this.enlarging.forget(drawing);
    this.admission.addAlone(drawing);
  }

  private end(drawing: DrawingInProgress, error: unknown): void {
    if (!removeFrom(this.drawings, drawing)) return;
    this.enlarging.forget(drawing);
    this.failed(drawing.task, error);
  }

  private failed(task: Task, error: unknown): void {
    this.turns.leave(task.owner);
    this.report({ type: 'failed', id: task.id, ...failureOf(error, task) });
  }

  private modelsInUse(): ReadonlySet<string> {
    const { upscaler } = this.enlarging;
    const { modelInUse } = this.admission;
    const keys = this.drawings.map(({ model }) => model.key);
    return new Set([...keys, ...(upscaler ? [upscaler] : []), ...(modelInUse ? [modelInUse] : [])]);
  }
}

const picturesOf = (batch: OwnBatch): Picture[] => batch.flatMap(({ pictures }) => pictures);

const rowsOf = (pictures: readonly Picture[]): number => pictures.reduce((sum, { rows }) => sum + rows, 0);

/** Of calls that take equally long: of one kind of picture, and with adapters of equal ranks. */
const kindOfCall = (batch: OwnBatch): string =>
  `${batch[0].drawing.kind} ${batch.map(({ drawing }) => drawing.ranks).find((ranks) => ranks !== '') ?? ''}`;
