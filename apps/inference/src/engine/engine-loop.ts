import { setImmediate } from 'node:timers/promises';
import type { StableDiffusionPipeline } from '@app/diffusion';
import { AbortError, OutOfMemoryError } from '@app/diffusion';
import type { DrawCommand } from './drawing-in-progress';
import { DrawingInProgress, pipelineRequest } from './drawing-in-progress';
import type { EngineReport } from './engine-protocol';
import { Enlarging } from './enlarging';
import { EngineShares } from './engine-shares';
import { failureOf } from './failure';
import type { LoadingOptions } from './model-loading';
import { describePipeline } from './model-loading';
import type { ModelSpec } from './model-registry';
import { ModelRegistry } from './model-registry';
import { OneAtATime } from './one-at-a-time';
import { bytesPerRow } from './picture-memory';
import type { Turn } from './turn';
import { chooseTurn } from './turn';

/** Rows of one call of the U-Net. On the CPU a call of more takes no less time for each. */
const mostRows = { cpu: 16, gpu: 32 };

type DrawingTurn = Turn<DrawingInProgress>;

/** A command that is not drawn yet. */
interface Waiting {
  command: DrawCommand;
  /** What its model takes; asked for once, for a Fine-Tune is merged for it. */
  spec?: Promise<ModelSpec<StableDiffusionPipeline>>;
}

/**
 * Draws every request of a device side by side: each turn admits what has room, chooses who goes next, advances them by one call of
 * the U-Net and hands on what is done. Between two turns commands come in.
 */
export class EngineLoop {
  private readonly waiting: Waiting[] = [];
  private drawings: DrawingInProgress[] = [];
  private readonly shares = new EngineShares();
  /** By which each piece of the device's work is done, denoising and enlarging by turns. */
  private readonly device = new OneAtATime();
  private readonly registry: ModelRegistry;
  private readonly enlarging: Enlarging;
  /** The model that is being loaded, or from which the first drawing is being prepared. */
  private beginning: string | undefined;
  /** Rows that a call of a group may have since a larger one ran out of memory. */
  private readonly rowLimits = new Map<string, number>();
  private running: Promise<void> | undefined;
  private isClosed = false;

  constructor(
    private readonly options: LoadingOptions,
    memoryBytes: number,
    private readonly report: (message: EngineReport) => void,
  ) {
    this.registry = new ModelRegistry(
      memoryBytes,
      () => this.modelsInUse(),
      (loaded) => report({ type: 'loaded', ...loaded }),
    );
    this.enlarging = new Enlarging(this.registry, options, this.device, report);
  }

  /** Draws, and reports how it went; never throws. */
  add(command: DrawCommand): void {
    this.waiting.push({ command });
    this.running ??= this.run().finally(() => (this.running = undefined));
  }

  /** Gives up what is being drawn, and releases every model. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
    await this.enlarging.close();
    await this.registry.clear();
  }

  private async run(): Promise<void> {
    while (!this.isClosed && this.waiting.length + this.drawings.length > 0) {
      await setImmediate();
      this.endAborted();
      await this.device.run(() => this.admit());
      const turn = chooseTurn(
        this.drawings,
        (owner) => this.shares.of(owner),
        (group) => this.maxRows(group),
      );
      if (turn.length > 0) await this.device.run(() => this.step(turn));
      await this.retire(turn);
    }
  }

  private endAborted(): void {
    const isAborted = ({ cancel }: DrawCommand): boolean => Atomics.load(new Int32Array(cancel), 0) !== 0;
    for (const entry of this.waiting.filter(({ command }) => isAborted(command))) {
      this.waiting.splice(this.waiting.indexOf(entry), 1);
      this.fail(entry.command, new AbortError());
    }
    for (const drawing of this.drawings.filter(({ isAborted: given }) => given)) this.end(drawing, new AbortError());
  }

  /**
   * Begins what waits, in its order. One whose model has no room beside those in use waits until it has, and who comes after it
   * waits with it, so that it is never overtaken for good. So does one that is to be drawn alone.
   */
  private async admit(): Promise<void> {
    while (this.waiting.length > 0) {
      const [entry] = this.waiting;
      const { command } = entry;
      const isAlone = this.drawings.length === 0;
      if (!isAlone && (command.alone || this.drawings.some((drawing) => drawing.command.alone))) return;
      const startedAt = performance.now();
      try {
        const { key } = command.model;
        const describe = () => (entry.spec ??= describePipeline(command.model, this.options));
        const hasRoom = isAlone || this.registry.has(key) || (await describe()).bytes <= this.registry.drawingBytes;
        if (!hasRoom) return;
        this.beginning = key;
        this.waiting.shift();
        await this.begin(command, await this.registry.get(key, describe));
      } catch (error) {
        if (this.waiting[0] === entry) this.waiting.shift();
        this.fail(command, error);
      } finally {
        this.beginning = undefined;
      }
      this.shares.charge(command.owner, performance.now() - startedAt);
    }
  }

  private async begin(command: DrawCommand, pipeline: StableDiffusionPipeline): Promise<void> {
    const { id, request, owner } = command;
    const startedAt = performance.now();
    const trajectories = await pipeline.prepare(pipelineRequest(request));
    const drawing = new DrawingInProgress(command, pipeline, trajectories);
    drawing.computeMs = performance.now() - startedAt;
    this.shares.enter(owner);
    this.drawings.push(drawing);
    const { chunks: promptChunks } = trajectories[0].prompt;
    this.report({ type: 'started', id, promptChunks, scheduler: request.scheduler ?? pipeline.facts.scheduler });
  }

  /** Rows that one call of a group may have: as memory allows, idle models making room, and never less than a picture. */
  private maxRows(group: string): number {
    const drawing = this.drawings.find(({ pictures }) => pictures.some((picture) => picture.group === group))!;
    const rowBytes = bytesPerRow(drawing.pipeline.facts, drawing.command.request);
    const most = Math.min(
      this.rowLimits.get(group) ?? Infinity,
      mostRows[this.options.device === 'cpu' ? 'cpu' : 'gpu'],
    );
    return Math.max(1, Math.min(most, Math.floor(this.registry.drawingBytes / rowBytes)));
  }

  private async step(turn: readonly DrawingTurn[]): Promise<void> {
    const [{ candidate: first, pictures: firstPictures }] = turn;
    const trajectories = turn.flatMap(({ pictures }) => pictures.map(({ trajectory }) => trajectory));
    const rows = trajectories.reduce((sum, trajectory) => sum + trajectory.rows, 0);
    const startedAt = performance.now();
    try {
      await this.registry.makeRoom(rows * bytesPerRow(first.pipeline.facts, first.command.request));
      await first.pipeline.step(trajectories);
    } catch (error) {
      return this.stepFailed(turn, firstPictures[0].group, rows, error);
    }
    const stepMs = performance.now() - startedAt;
    for (const { candidate, pictures } of turn) {
      const ms = (stepMs * pictures.reduce((sum, picture) => sum + picture.rows, 0)) / rows;
      candidate.computeMs += ms;
      candidate.isSuspect = false;
      this.shares.charge(candidate.owner, ms);
    }
    const moved = new Set(turn.map(({ candidate }) => candidate));
    for (const drawing of this.drawings) drawing.passedOver = moved.has(drawing) ? 0 : drawing.passedOver + 1;
    this.report({ type: 'stepped', drawings: turn.length, pictures: trajectories.length, rows, stepMs });
    this.tell(turn.map(({ candidate }) => candidate));
  }

  /**
   * A call that ran out of memory is tried with half of its rows. One that failed otherwise is tried by each of its drawings alone,
   * so that it fails nobody but the one whose fault it is.
   */
  private stepFailed(turn: readonly DrawingTurn[], group: string, rows: number, error: unknown): void {
    const rowsOfPicture = turn[0].pictures[0].rows;
    if (error instanceof OutOfMemoryError && rows > rowsOfPicture) {
      this.rowLimits.set(group, Math.max(rowsOfPicture, Math.floor(rows / 2)));
      return;
    }
    if (turn.length === 1) return this.end(turn[0].candidate, error);
    for (const { candidate } of turn) candidate.isSuspect = true;
  }

  /** Tells how far these are, with at most one preview a turn: of the drawing that has waited longest for one. */
  private tell(drawings: readonly DrawingInProgress[]): void {
    const now = performance.now();
    const [due] = drawings
      .filter((drawing) => drawing.previewDueMs(now) >= 0)
      .sort((a, b) => b.previewDueMs(now) - a.previewDueMs(now));
    for (const drawing of drawings)
      try {
        const preview = drawing === due && { preview: drawing.preview(now) };
        this.report({ type: 'progress', id: drawing.command.id, ...drawing.progress, ...preview });
      } catch (error) {
        this.end(drawing, error);
      }
  }

  /** Decodes the pictures that this turn finished, and hands them on. */
  private async retire(turn: readonly DrawingTurn[]): Promise<void> {
    for (const { candidate, pictures } of turn)
      for (const { trajectory } of pictures.filter((picture) => picture.trajectory.done)) {
        await setImmediate();
        if (!this.drawings.includes(candidate) || candidate.isAborted) break;
        await this.device.run(() => this.decode(candidate, trajectory));
      }
  }

  private async decode(
    drawing: DrawingInProgress,
    trajectory: DrawingInProgress['trajectories'][number],
  ): Promise<void> {
    const { id, upscaler } = drawing.command;
    const startedAt = performance.now();
    try {
      const picture = await drawing.timed(() => drawing.pipeline.decode(trajectory));
      this.shares.charge(drawing.owner, performance.now() - startedAt);
      drawing.decoded.push(picture);
      const index = drawing.decoded.length - 1;
      if (!upscaler) this.report({ type: 'picture', id, index, picture, upscaled: false });
    } catch (error) {
      return this.end(drawing, error);
    }
    if (drawing.decoded.length < drawing.trajectories.length) return;
    if (!upscaler) {
      this.report({ type: 'done', id, computeMs: drawing.computeMs });
      return this.remove(drawing);
    }
    this.remove(drawing);
    this.enlarging.add(drawing, upscaler);
  }

  private end(drawing: DrawingInProgress, error: unknown): void {
    this.remove(drawing);
    this.fail(drawing.command, error);
  }

  private remove(drawing: DrawingInProgress): void {
    this.drawings = this.drawings.filter((other) => other !== drawing);
    if (!this.drawings.some(({ owner }) => owner === drawing.owner)) this.shares.leave(drawing.owner);
  }

  private fail(command: DrawCommand, error: unknown): void {
    this.report({ type: 'failed', id: command.id, ...failureOf(error, command) });
  }

  private modelsInUse(): Set<string> {
    const keys = [...this.drawings.map(({ command }) => command.model.key), ...this.enlarging.modelsInUse];
    return new Set(this.beginning === undefined ? keys : [...keys, this.beginning]);
  }
}
