import { AbortError, SharedSessions } from '@app/diffusion';
import { OneAtATime } from '@app/process';
import { Admission, type AdmissionHost } from '../admission/admission';
import type { DrawCommand, DrawingInProgress } from '../calls/drawing-in-progress';
import { msLeft } from '../calls/next-call';
import { PieceChoice } from '../calls/piece-choice';
import { Pieces } from '../calls/pieces';
import { RowLimits } from '../calls/row-limits';
import type { EngineMessage } from '../engine-protocol';
import type { LoadingOptions } from '../models/model-loading';
import { ModelRegistry } from '../models/model-registry';
import { Changes } from '../threads/changes';
import { laneCount } from '../lane';
import { LanePlaces } from '../threads/lane-places';
import { Lanes } from '../threads/lanes';
import { SideThread } from '../threads/side-thread';
import { CallTimes } from '../time/call-times';
import { EngineShares } from '../time/engine-shares';
import { wallClocks, type WorkClocks } from '../time/work-clock';
import { Enlarging } from '../upscaling/enlarging';
import { SideWork } from './side-work';

/** What the parts of an engine ask its loop, and what they tell it. */
export interface PartsHost {
  drawings: () => readonly DrawingInProgress[];
  /** Whether what is drawn wants nothing beside it. */
  isDrawingAlone: () => boolean;
  isClosed: () => boolean;
  begun: (drawing: DrawingInProgress) => void;
  /** Every picture of it is decoded. */
  decoded: (drawing: DrawingInProgress) => void;
  /** It is drawn anew with nothing beside it. */
  drawAlone: (drawing: DrawingInProgress) => void;
  end: (drawing: DrawingInProgress, error: unknown) => void;
  /** A command failed before it began. */
  failed: (command: DrawCommand, error: unknown) => void;
  /** An owner has one drawing less. */
  left: (owner: string) => void;
  report: (message: EngineMessage) => void;
}

/** The parts of an engine, put together for its device: lanes on the processor, a second thread with CUDA. */
export class EngineParts {
  readonly admission: Admission;
  readonly shares = new EngineShares();
  /** Something may have changed what there is to do. */
  readonly changes = new Changes();
  /**
   * Runs pieces of the engine's own thread, with CUDA the calls of the U-Net; a merge that goes on has its time between
   * them.
   */
  readonly ownThread = new OneAtATime(() => this.admission.letMerge());
  readonly places = new LanePlaces(laneCount, this.changes);
  private readonly registry: ModelRegistry;
  readonly enlarging: Enlarging;
  readonly pieces: Pieces;
  readonly choice: PieceChoice;
  readonly sideWork: SideWork | undefined;
  private readonly callTimes = new CallTimes();
  private readonly lanes: Lanes | undefined;
  private readonly side: SideThread | undefined;

  /** @param onLost told when a thread of this engine has ended by itself: it must end too */
  constructor(
    options: LoadingOptions,
    memoryBytes: number,
    private readonly host: PartsHost,
    onLost: (error: Error) => void,
  ) {
    const { drawings, report, left } = host;
    this.registry = new ModelRegistry(
      memoryBytes,
      { inUse: () => this.modelsInUse(), awaited: () => new Set(this.admission.modelsAwaited) },
      (loaded) => report({ type: 'loaded', ...loaded }),
      (key) => report({ type: 'released', key }),
    );
    const { registry, shares, callTimes } = this;
    const rowLimits = new RowLimits(options.device, {
      callBytes: (key, decoding, lane) => registry.callBytes(key, decoding, lane),
      isCheaperPerRow: (kind, count) => callTimes.isCheaperPerRow(kind, count),
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
    this.admission = new Admission(loading, registry, this.admissionHost(clocks));
    this.enlarging = new Enlarging(loading, {
      ...{ registry, shares, clocks, report, left },
      thread: side ?? this.ownThread,
      isDrawing: () => drawings().length > 0,
      withWork: () => this.choice.withWork(),
    });
    this.pieces = this.piecesWith(rowLimits, clocks);
    this.choice = new PieceChoice({ pieces: this.pieces, rowLimits, callTimes, shares, drawings });
    this.sideWork = side && this.workBeside(side);
  }

  /** Gives up what is being enlarged, and releases every model. */
  async close(): Promise<void> {
    await this.sideWork?.admitted();
    await this.places.idle();
    await this.enlarging.close();
    await this.side?.idle();
    await this.registry.clear();
    await this.lanes?.close();
    await this.side?.close();
  }

  private piecesWith(rowLimits: RowLimits, clocks: WorkClocks): Pieces {
    const { registry, callTimes, shares, host } = this;
    return new Pieces({
      ...{ registry, rowLimits, callTimes, shares, clocks, report: host.report, drawings: host.drawings },
      isEnlarging: () => this.enlarging.modelsInUse.length > 0,
      hasSecondThread: this.side !== undefined,
      end: host.end,
      drawAlone: host.drawAlone,
      decoded: host.decoded,
    });
  }

  private admissionHost({ others }: WorkClocks): AdmissionHost {
    const { side, host } = this;
    return {
      ...{ shares: this.shares, rowMs: () => this.callTimes.rowMs() },
      isIdle: () => host.drawings().length === 0 && this.areThreadsIdle && this.enlarging.modelsInUse.length === 0,
      isAnythingAlone: () => this.enlarging.wantsToBeAlone || host.isDrawingAlone(),
      drawingsLeft: () => host.drawings().map((each) => ({ owner: each.owner, msLeft: msLeft(each, this.callTimes) })),
      drawingOwners: () => [...host.drawings().map(({ owner }) => owner), ...this.enlarging.owners],
      begun: host.begun,
      failed: host.failed,
      throwIfClosed: () => {
        if (host.isClosed()) throw new AbortError();
      },
      busy: ({ id }) => host.report({ type: 'busy', id }),
      encode: (...during) => {
        const encode = () => others.during(...during);
        return side ? side.run(encode) : encode();
      },
    };
  }

  private workBeside(side: SideThread): SideWork {
    const { admission, choice, changes, host } = this;
    return new SideWork(side, {
      ...{ admission, choice, changes, isDrawingAlone: host.isDrawingAlone, isClosed: host.isClosed },
      isDrawing: () => host.drawings().length > 0,
    });
  }

  /** Whether nothing is under way outside of the engine's own thread. */
  private get areThreadsIdle(): boolean {
    return this.places.areIdle && (this.side?.isIdle ?? true);
  }

  private modelsInUse(): Set<string> {
    const drawn = this.host.drawings().map(({ command }) => command.model.key);
    const beginning = this.admission.modelInUse;
    return new Set([...drawn, ...this.enlarging.modelsInUse, ...(beginning === undefined ? [] : [beginning])]);
  }
}
