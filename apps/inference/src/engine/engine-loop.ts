import { setImmediate } from 'node:timers/promises';
import { AbortError, SharedSessions } from '@app/diffusion';
import { Admission } from './admission';
import { CallTimes } from './call-times';
import type { DrawCommand, DrawingInProgress } from './drawing-in-progress';
import type { EngineMessage } from './engine-protocol';
import { Enlarging } from './enlarging';
import { EngineShares } from './engine-shares';
import { failureOf } from './failure';
import { laneCount, LanePlaces } from './lane-places';
import { Lanes } from './lanes';
import type { LoadingOptions } from './model-loading';
import { ModelRegistry } from './model-registry';
import { OneAtATime } from './one-at-a-time';
import { Pieces, timesKind } from './pieces';
import { RowLimits } from './row-limits';
import { chooseTurn, inOrder, notAhead } from './turn';

/**
 * Draws every request of a device side by side: each turn admits what has room, and chooses the next piece of work, which is a picture
 * to decode, or who goes next by a call of the U-Net. One picture has all threads of the device; several are drawn in lanes, if there
 * are any, each of which is at a piece of its own. Between two turns commands come in.
 */
export class EngineLoop {
  private readonly admission: Admission;
  private drawings: DrawingInProgress[] = [];
  private readonly shares = new EngineShares();
  /** Runs denoising and enlarging by turns, one piece at a time. */
  private readonly device = new OneAtATime();
  private readonly registry: ModelRegistry;
  private readonly enlarging: Enlarging;
  private readonly rowLimits: RowLimits;
  private running: Promise<void> | undefined;
  private readonly callTimes = new CallTimes();
  private readonly lanes: Lanes | undefined;
  private readonly places = new LanePlaces(laneCount);
  private readonly pieces: Pieces;
  private isClosed = false;

  /** @param onLost told when a thread of this engine has ended by itself: it must end too */
  constructor(
    options: LoadingOptions,
    memoryBytes: number,
    private readonly report: (message: EngineMessage) => void,
    onLost: (error: Error) => void,
  ) {
    this.registry = new ModelRegistry(
      memoryBytes,
      () => this.modelsInUse(),
      (loaded) => report({ type: 'loaded', ...loaded }),
      (key) => report({ type: 'released', key }),
    );
    this.rowLimits = new RowLimits(options.device, {
      callBytes: (key, decoding, lane) => this.registry.callBytes(key, decoding, lane),
      isCheaperPerRow: (kind, count) => this.callTimes.isCheaperPerRow(kind, count),
    });
    const { device, intraOpNumThreads: threads } = options;
    this.lanes = Lanes.of(device, threads, memoryBytes, onLost);
    const loading = { ...options, sharedSessions: new SharedSessions(), ...(this.lanes && { lanes: this.lanes }) };
    this.admission = new Admission(loading, this.registry, {
      isIdle: () => this.drawings.length === 0 && this.places.areIdle && this.enlarging.modelsInUse.length === 0,
      isAlone: () => this.enlarging.isAlone || this.drawings.some(({ command }) => command.alone),
      begun: (drawing) => this.begin(drawing),
      failed: (command, error) => this.fail(command, error),
      isMerging: ({ id }) => {
        if (this.isClosed) throw new AbortError();
        report({ type: 'busy', id });
      },
      charge: (owner, ms) => this.shares.charge(owner, ms),
    });
    const left = (owner: string) => this.left(owner);
    const { registry, shares, device: work } = this;
    this.enlarging = new Enlarging(options, {
      ...{ registry, shares, device: work, report, left },
      isDrawing: () => this.drawings.length > 0,
      waiting: () => this.waiting(),
      rowMs: () => this.callTimes.rowMs,
    });
    this.pieces = new Pieces({
      ...{ registry, rowLimits: this.rowLimits, callTimes: this.callTimes, shares, report },
      drawings: () => this.drawings,
      isEnlarging: () => this.enlarging.modelsInUse.length > 0,
      end: (drawing, error) => this.end(drawing, error),
      drawAlone: (drawing) => {
        this.remove(drawing);
        this.admission.addAlone(drawing);
      },
      decoded: (drawing) => this.decoded(drawing),
    });
  }

  /** Draws, and reports how it went; never throws. */
  add(command: DrawCommand): void {
    this.admission.add(command);
    this.places.wake();
    this.running ??= this.run().finally(() => (this.running = undefined));
  }

  /** Gives up what is being drawn, and releases every model. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
    await this.places.idle();
    await this.enlarging.close();
    await this.registry.clear();
    await this.lanes?.close();
  }

  private async run(): Promise<void> {
    while (!this.isClosed && this.admission.size + this.drawings.length > 0) {
      await setImmediate();
      this.endAborted();
      this.enlarging.wake();
      if (await this.device.run(() => this.goOn())) continue;
      if (this.drawings.length === 0) await (this.places.areIdle ? this.admission.settled() : this.places.change());
      else if (this.areLanesOfUse()) await this.goOnInLane();
      else if (!this.places.areIdle) await this.places.change();
    }
    this.enlarging.wake();
  }

  /**
   * Admits what has room, and does the next piece of all threads; both at once, because a tile may go before the next time.
   * @returns whether there was such a piece
   */
  private async goOn(): Promise<boolean> {
    await this.admission.admit();
    if (this.drawings.length === 0 || !this.places.areIdle || this.areLanesOfUse()) return false;
    const piece = this.nextPiece();
    await piece?.();
    return piece !== undefined;
  }

  /** Whether there is more than one picture for the lanes, room for one of each drawing in each, and nothing that only all threads together can do. */
  private areLanesOfUse(): boolean {
    const pictures = this.drawings.reduce((sum, { undecoded }) => sum + undecoded.length, 0);
    const isAlone = this.drawings.some(({ command }) => command.alone);
    if (pictures < laneCount || isAlone || this.enlarging.modelsInUse.length > 0) return false;
    for (const { model } of this.drawings) model.openLanes();
    if (this.drawings.some(({ model }) => !model.inLanes)) return false;
    return this.drawings.every((drawing) => this.pieces.hasRoomInLanes(drawing));
  }

  private async goOnInLane(): Promise<void> {
    const lane = this.places.free;
    const piece = lane === undefined ? undefined : this.nextPiece(lane);
    if (lane === undefined || !piece) return this.places.change();
    this.places.begin(lane, piece);
  }

  /** A call of the U-Net with the pictures whose turn it is, or decoding one; only of owners who are not ahead. @param lane by which; without one, by all threads */
  private nextPiece(lane?: number): (() => Promise<void>) | undefined {
    const { rowMs, decodeRows } = this.callTimes;
    const entitled = notAhead(this.waiting(), { engineMs: (owner) => this.shares.of(owner), rowMs });
    const inTurn = inOrder(entitled, { decodeRows });
    const [first] = inTurn;
    if (first?.toDecode) return () => this.pieces.decode(first, first.toDecode!, lane);
    const denoising = inTurn.filter(({ pictures }) => pictures.length > 0);
    const turn = chooseTurn(denoising, {
      decodeRows,
      maxRows: (group) => this.maxRows(group, lane),
      isSharingSooner: (kind, rows) => this.callTimes.isSharingSooner(timesKind(kind, lane), rows),
    });
    return turn.length > 0 ? () => this.pieces.step(turn, lane) : undefined;
  }

  /** Drawings that have something to draw that nobody is at. */
  private waiting(): DrawingInProgress[] {
    return this.drawings.filter((drawing) => drawing.pictures.length > 0 || drawing.toDecode);
  }

  private endAborted(): void {
    this.admission.endAborted();
    this.enlarging.endAborted();
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

  /** Each lane has its part of the pictures. */
  private maxRows(group: string, lane: number | undefined): number {
    const rowsIn = (drawing: DrawingInProgress) =>
      drawing.undecoded.reduce((sum, each) => sum + (drawing.groupOf(each) === group ? each.rows : 0), 0);
    const member = this.drawings.find((drawing) => rowsIn(drawing) > 0)!;
    const kind = member.kindOf(member.undecoded.find((each) => member.groupOf(each) === group)!);
    const most = this.rowLimits.of(kind, member, lane);
    if (lane === undefined) return most;
    const rows = this.drawings.reduce((sum, drawing) => sum + rowsIn(drawing), 0);
    return Math.min(most, Math.ceil(rows / laneCount));
  }

  private decoded(drawing: DrawingInProgress): void {
    const { id, upscaler } = drawing.command;
    if (upscaler) this.enlarging.add(drawing, upscaler);
    this.remove(drawing);
    if (!upscaler) this.report({ type: 'done', id, computeMs: drawing.computeMs });
  }

  private end(drawing: DrawingInProgress, error: unknown): void {
    this.remove(drawing);
    this.fail(drawing.command, error);
  }

  private remove(drawing: DrawingInProgress): void {
    this.drawings = this.drawings.filter((other) => other !== drawing);
    this.left(drawing.owner);
  }

  private left(owner: string): void {
    if (!this.drawings.some((drawing) => drawing.owner === owner) && !this.enlarging.has(owner))
      this.shares.leave(owner);
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
