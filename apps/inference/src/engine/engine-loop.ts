import { setImmediate } from 'node:timers/promises';
import { AbortError, OutOfMemoryError, SharedSessions } from '@app/diffusion';
import { Admission } from './admission';
import { CallTimes } from './call-times';
import type { DrawCommand, DrawingInProgress } from './drawing-in-progress';
import type { EngineReport } from './engine-protocol';
import { Enlarging } from './enlarging';
import { EngineShares } from './engine-shares';
import { failureOf } from './failure';
import type { LoadingOptions } from './model-loading';
import { ModelRegistry } from './model-registry';
import { OneAtATime } from './one-at-a-time';
import { bytesPerRow } from './picture-memory';
import { RowLimits } from './row-limits';
import type { Turn } from './turn';
import { chooseTurn } from './turn';

type DrawingTurn = Turn<DrawingInProgress>;

/**
 * Draws every request of a device side by side: each turn admits what has room, chooses who goes next, advances them by one call of
 * the U-Net and hands on what is done. Between two turns commands come in.
 */
export class EngineLoop {
  private readonly admission: Admission;
  private drawings: DrawingInProgress[] = [];
  private readonly shares = new EngineShares();
  /** By which each piece of the device's work is done, denoising and enlarging by turns. */
  private readonly device = new OneAtATime();
  private readonly registry: ModelRegistry;
  private readonly enlarging: Enlarging;
  private readonly rowLimits: RowLimits;
  private running: Promise<void> | undefined;
  private readonly callTimes = new CallTimes();
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
      (key) => report({ type: 'released', key }),
    );
    this.rowLimits = new RowLimits(options.device, () => this.registry.drawingBytes);
    this.admission = new Admission({ ...options, sharedSessions: new SharedSessions() }, this.registry, {
      isIdle: () => this.drawings.length === 0 && this.enlarging.modelsInUse.length === 0,
      isAlone: () => this.drawings.some(({ command }) => command.alone),
      begun: (drawing) => this.begin(drawing),
      failed: (command, error) => this.fail(command, error),
      isMerging: ({ id }) => {
        if (this.isClosed) throw new AbortError();
        report({ type: 'busy', id });
      },
      charge: (owner, ms) => this.shares.charge(owner, ms),
    });
    this.enlarging = new Enlarging(this.registry, options, this.device, report);
  }

  /** Draws, and reports how it went; never throws. */
  add(command: DrawCommand): void {
    this.admission.add(command);
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
    while (!this.isClosed && this.admission.size + this.drawings.length > 0) {
      await setImmediate();
      this.endAborted();
      await this.device.run(() => this.admission.admit());
      if (this.drawings.length === 0) {
        await this.admission.settled();
        continue;
      }
      const turn = chooseTurn(this.drawings, {
        engineMs: (owner) => this.shares.of(owner),
        rowMs: this.callTimes.rowMs,
        maxRows: (group) => this.maxRows(group),
        isSharingSooner: (group, rows) => this.callTimes.isSharingSooner(group, rows),
      });
      if (turn.length > 0) await this.device.run(() => this.step(turn));
      await this.retire(turn);
    }
  }

  private endAborted(): void {
    this.admission.endAborted();
    for (const drawing of this.drawings.filter(({ isAborted }) => isAborted)) this.end(drawing, new AbortError());
  }

  private begin(drawing: DrawingInProgress): void {
    const { command, pipeline, owner, trajectories } = drawing;
    this.shares.enter(owner);
    this.drawings.push(drawing);
    const { chunks: promptChunks } = trajectories[0].prompt;
    const scheduler = command.request.scheduler ?? pipeline.facts.scheduler;
    this.report({ type: 'started', id: command.id, promptChunks, scheduler });
  }

  private maxRows(group: string): number {
    const isMember = ({ pictures }: DrawingInProgress) => pictures.some((picture) => picture.group === group);
    return this.rowLimits.of(group, this.drawings.find(isMember)!);
  }

  private async step(turn: readonly DrawingTurn[]): Promise<void> {
    const [{ candidate: first, pictures: firstPictures }] = turn;
    const trajectories = turn.flatMap(({ pictures }) => pictures.map(({ trajectory }) => trajectory));
    const rows = trajectories.reduce((sum, trajectory) => sum + trajectory.rows, 0);
    let startedAt: number;
    try {
      await this.registry.makeRoom(rows * bytesPerRow(first.pipeline.facts, first.command.request));
      startedAt = performance.now();
      await first.pipeline.step(trajectories);
    } catch (error) {
      return this.stepFailed(turn, rows, error);
    }
    const stepMs = performance.now() - startedAt;
    this.callTimes.note(firstPictures[0].group, rows, stepMs);
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
  private async stepFailed(turn: readonly DrawingTurn[], rows: number, error: unknown): Promise<void> {
    const [{ candidate: first, pictures }] = turn;
    const [{ group, rows: rowsOfPicture }] = pictures;
    if (error instanceof OutOfMemoryError && this.rowLimits.halve(group, rows, rowsOfPicture)) return;
    if (turn.length === 1) return void (await this.endUnlessRoom(first, error));
    for (const { candidate } of turn) candidate.isSuspect = true;
  }

  /**
   * Ends a drawing, unless it ran out of memory and more can be had: from idle models, else by drawing it anew with nothing beside it.
   * @returns whether there is more memory now, so that what failed may be tried again
   */
  private async endUnlessRoom(drawing: DrawingInProgress, error: unknown): Promise<boolean> {
    if (error instanceof OutOfMemoryError && (await this.registry.releaseIdle())) return true;
    const hasOthers = this.drawings.length > 1 || this.enlarging.modelsInUse.length > 0;
    if (!(error instanceof OutOfMemoryError) || !hasOthers) this.end(drawing, error);
    else {
      this.remove(drawing);
      this.admission.addAlone(drawing);
    }
    return false;
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
      const index = drawing.decoded.push(picture) - 1;
      if (!upscaler && index >= drawing.handedOn) this.report({ type: 'picture', id, index, picture, upscaled: false });
    } catch (error) {
      if (await this.endUnlessRoom(drawing, error)) await this.decode(drawing, trajectory);
      return;
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
    const beginning = this.admission.modelInUse;
    return new Set(beginning === undefined ? keys : [...keys, beginning]);
  }
}
