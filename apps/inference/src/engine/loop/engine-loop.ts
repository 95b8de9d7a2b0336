import { setImmediate } from 'node:timers/promises';
import { AbortError, SharedSessions } from '@app/diffusion';
import type { AdmissionHost } from '../admission/admission';
import { Admission } from '../admission/admission';
import { CallTimes } from '../time/call-times';
import type { DrawCommand, DrawingInProgress } from '../calls/drawing-in-progress';
import type { EngineMessage } from '../engine-protocol';
import { Enlarging } from '../upscaling/enlarging';
import { EngineShares } from '../time/engine-shares';
import { failureOf } from '../failure';
import { laneCount, LanePlaces } from '../threads/lane-places';
import { Lanes } from '../threads/lanes';
import type { LoadingOptions } from '../models/model-loading';
import { ModelRegistry } from '../models/model-registry';
import { OneAtATime } from '../common/one-at-a-time';
import { PieceChoice } from '../calls/piece-choice';
import { Pieces } from '../calls/pieces';
import { RowLimits } from '../calls/row-limits';
import { SideThread } from '../threads/side-thread';
import { SideWork } from './side-work';
import type { WorkClocks } from '../time/work-clock';
import { wallClocks } from '../time/work-clock';

/**
 * Draws every request of a device side by side: each turn admits what has room, and chooses the next piece of work,
 * which is a picture to decode, or who goes next by a call of the U-Net. One picture has all threads of the device;
 * several are drawn in lanes, if there are any, each of which is at a piece of its own. With CUDA this thread only calls
 * the U-Net, and a second thread encodes, decodes and enlarges beside it. Between two turns commands come in.
 */
export class EngineLoop {
  private readonly admission: Admission;
  private drawings: DrawingInProgress[] = [];
  private readonly shares = new EngineShares();
  /** Runs the engine's pieces by turns, with CUDA the calls of the U-Net; a merge that goes on has its time between them. */
  private readonly device = new OneAtATime((ms) => this.admission.letMerge(ms));
  private readonly registry: ModelRegistry;
  private readonly enlarging: Enlarging;
  private readonly rowLimits: RowLimits;
  private running: Promise<void> | undefined;
  private readonly callTimes = new CallTimes();
  private readonly lanes: Lanes | undefined;
  private readonly places = new LanePlaces(laneCount);
  private readonly side: SideThread | undefined;
  private readonly pieces: Pieces;
  private readonly choice: PieceChoice;
  private readonly sideWork: SideWork | undefined;
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
    const { device, intraOpNumThreads } = options;
    this.lanes = Lanes.of(device, intraOpNumThreads, memoryBytes, onLost);
    const side = (this.side = SideThread.of({ device, intraOpNumThreads }, () => this.sideWork!.pieceEnded(), onLost));
    const clocks = side?.calls.clocks ?? wallClocks;
    const loading = {
      ...{ ...options, sharedSessions: new SharedSessions() },
      ...(this.lanes && { lanes: this.lanes }),
      ...(side && { side }),
    };
    this.admission = new Admission(loading, this.registry, this.admissionHost(clocks));
    const left = (owner: string) => this.left(owner);
    const { registry, shares, rowLimits, callTimes } = this;
    this.enlarging = new Enlarging(loading, {
      ...{ registry, shares, clocks, report, left },
      device: side ?? this.device,
      isDrawing: () => this.drawings.length > 0,
      waiting: () => this.choice.waiting(),
    });
    const drawings = () => this.drawings;
    this.pieces = new Pieces({
      ...{ registry, rowLimits, callTimes, shares, clocks, report, drawings },
      isEnlarging: () => this.enlarging.modelsInUse.length > 0,
      hasSecondThread: side !== undefined,
      end: (drawing, error) => this.end(drawing, error),
      drawAlone: (drawing) => {
        this.admission.addAlone(drawing);
        this.remove(drawing);
      },
      decoded: (drawing) => this.decoded(drawing),
    });
    this.choice = new PieceChoice({ pieces: this.pieces, rowLimits, callTimes, shares, drawings });
    this.sideWork = side && this.workBeside(side);
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
    await this.sideWork?.admitted();
    await this.places.idle();
    await this.enlarging.close();
    await this.side?.idle();
    await this.registry.clear();
    await this.lanes?.close();
    await this.side?.close();
  }

  private admissionHost({ others }: WorkClocks): AdmissionHost {
    const { side } = this;
    return {
      ...{ shares: this.shares, rowMs: () => this.callTimes.rowMs() },
      isIdle: () => {
        const areThreadsIdle = this.places.areIdle && (side?.isIdle ?? true);
        return this.drawings.length === 0 && areThreadsIdle && this.enlarging.modelsInUse.length === 0;
      },
      isAlone: () => this.enlarging.isAlone || this.isAlone,
      drawingOwners: () => this.drawings.map(({ owner }) => owner),
      begun: (drawing) => this.begin(drawing),
      failed: (command, error) => {
        this.fail(command, error);
        this.places.wake();
      },
      throwIfClosed: () => {
        if (this.isClosed) throw new AbortError();
      },
      busy: ({ id }) => this.report({ type: 'busy', id }),
      encode: (...during) => {
        const encode = () => others.during(...during);
        return side ? side.run(encode) : encode();
      },
    };
  }

  private workBeside(side: SideThread): SideWork {
    return new SideWork(side, {
      ...{ admission: this.admission, choice: this.choice, places: this.places },
      isDrawing: () => this.drawings.length > 0,
      isAlone: () => this.isAlone,
      isClosed: () => this.isClosed,
    });
  }

  private async run(): Promise<void> {
    while (!this.isClosed && this.admission.size + this.drawings.length > 0) {
      await setImmediate();
      this.endAborted();
      this.enlarging.wake();
      if (this.sideWork) await this.device.run(() => this.sideWork!.callOrWait());
      else if (await this.device.run(() => this.goOn())) continue;
      else if (this.drawings.length === 0)
        await (this.places.areIdle ? this.admission.settled() : this.places.change());
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
    const piece = this.choice.next();
    await piece?.();
    return piece !== undefined;
  }

  private get isAlone(): boolean {
    return this.drawings.some(({ command }) => command.alone);
  }

  /** Whether there is more than one picture for the lanes, room for one of each drawing in each, and nothing that only all threads together can do. */
  private areLanesOfUse(): boolean {
    const pictures = this.drawings.reduce((sum, { undecoded }) => sum + undecoded.length, 0);
    if (pictures < laneCount || this.isAlone || this.enlarging.modelsInUse.length > 0) return false;
    for (const { model } of this.drawings) model.openLanes();
    if (this.drawings.some(({ model }) => !model.inLanes)) return false;
    return this.drawings.every((drawing) => this.pieces.hasRoomInLanes(drawing));
  }

  private async goOnInLane(): Promise<void> {
    const lane = this.places.free;
    const piece = lane === undefined ? undefined : this.choice.next(lane);
    if (lane === undefined || !piece) return this.places.change();
    this.places.begin(lane, piece);
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
    this.places.wake();
    const { chunks: promptChunks } = trajectories[0].prompt;
    const scheduler = command.request.scheduler ?? pipeline.facts.scheduler;
    this.report({ type: 'started', id: command.id, promptChunks, scheduler });
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
      this.shares.leave(owner, this.admission.has(owner));
  }

  private fail(command: DrawCommand, error: unknown): void {
    this.left(command.owner);
    this.report({ type: 'failed', id: command.id, ...failureOf(error, command) });
  }

  private modelsInUse(): Set<string> {
    const keys = [...this.drawings.map(({ command }) => command.model.key), ...this.enlarging.modelsInUse];
    const beginning = this.admission.modelInUse;
    return new Set(beginning === undefined ? keys : [...keys, beginning]);
  }
}
