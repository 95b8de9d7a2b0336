import { asOutOfMemory, type Renderer, type Trajectory } from '@app/diffusion';
import type { DrawingCalls } from '../memory/arena';
import type { CallTimes } from '../time/call-times';
import type { DrawingInProgress } from './drawing-in-progress';
import type { EngineMessage } from '../engine-protocol';
import type { EngineShares } from '../time/engine-shares';
import { type Lane, laneCount } from '../lane';
import type { ModelRegistry } from '../models/model-registry';
import { bytesPerRow, decodeBytes } from '../memory/picture-memory';
import { type OutcomesHost, PieceOutcomes } from './piece-outcomes';
import { type CallPart, passedOverAfter } from './next-call';
import type { DeviceTime, WorkClocks } from '../time/work-clock';

type Part = CallPart<DrawingInProgress>;

/** What the pieces of work have to know of the engine, and what they tell it. */
export interface PiecesHost extends OutcomesHost {
  registry: ModelRegistry;
  callTimes: CallTimes;
  shares: EngineShares;
  clocks: WorkClocks;
  report: (message: EngineMessage) => void;
  /** Every picture of it is decoded. */
  decoded: (drawing: DrawingInProgress) => void;
}

/** The part of the engine that a piece of work has. */
const shareOf = (lane: Lane | undefined): number => (lane === undefined ? 1 : 1 / laneCount);

/**
 * The pieces of an engine's work: a call of the U-Net, and decoding a picture. Each reports how it went and never
 * throws.
 */
export class Pieces {
  private readonly outcomes: PieceOutcomes;

  constructor(private readonly host: PiecesHost) {
    this.outcomes = new PieceOutcomes(host);
  }

  /**
   * Makes one call for these pictures, except those that are given up before it begins.
   */
  async step(asked: readonly Part[], lane?: Lane): Promise<void> {
    const { callTimes, shares, clocks, report } = this.host;
    const suspicions = new Map(asked.map(({ candidate }) => [candidate, candidate.suspicion]));
    let parts = asked;
    let time: DeviceTime | undefined;
    let engineMs = 0;
    // Each owner has its rows' part of a call, also of one that fails.
    const charge = (took: DeviceTime): void => {
      time = took;
      engineMs = took.ms * shareOf(lane);
      if (lane === undefined) shares.noteBlocked(took.blockedMs);
      for (const { candidate, pictures } of parts)
        shares.charge(candidate.owner, (engineMs * rowsOf(pictures)) / rowsOfParts(parts));
    };
    try {
      await this.underWay(asked, async () => {
        await this.reserve(asked[0].candidate, rowsOfParts(asked), lane);
        parts = asked.filter(({ candidate }) => this.outcomes.isDrawn(candidate));
        if (parts.length === 0) return;
        const call = () => rendererOf(parts[0].candidate, lane).step(trajectoriesOf(parts));
        await clocks.unet.during(call, charge);
      });
    } catch (error) {
      return this.outcomes.stepFailed({ parts, rows: rowsOfParts(parts), lane }, asOutOfMemory(error));
    }
    if (!time) return;
    const [rows, { kind }] = [rowsOfParts(parts), parts[0].candidate];
    const { isShared } = time;
    callTimes.note(kind, rows, engineMs, { isShared, lane });
    this.outcomes.stepWentWell({ parts, rows }, suspicions);
    for (const { candidate, pictures } of parts) candidate.stepped((engineMs * rowsOf(pictures)) / rows);
    this.notePassedOver(parts.map(({ candidate }) => candidate));
    const pictures = trajectoriesOf(parts).length;
    report({ type: 'stepped', drawings: parts.length, pictures, rows, stepMs: time.passedMs, engineMs });
    this.tell(parts.map(({ candidate }) => candidate).filter((drawing) => this.outcomes.isDrawn(drawing)));
  }

  /** Decodes a picture, and hands on those that are ready. */
  async decode(drawing: DrawingInProgress, trajectory: Trajectory, lane?: Lane): Promise<void> {
    const { callTimes, shares, clocks, report, decoded } = this.host;
    const { id, upscaler, cancel } = drawing.command;
    drawing.underWay.add(trajectory);
    try {
      await this.reserve(drawing, 0, lane);
      if (!this.outcomes.isDrawn(drawing)) return;
      let engineMs = 0;
      const call = () => rendererOf(drawing, lane).decode(trajectory);
      // Also where it fails, and where nobody wants it any more.
      const charge = ({ ms, blockedMs }: DeviceTime): void => {
        engineMs = ms * shareOf(lane);
        if (lane === undefined) shares.noteBlocked(blockedMs);
        shares.charge(drawing.owner, engineMs);
      };
      const picture = await clocks.others.during(call, charge, cancel);
      if (!this.outcomes.isDrawn(drawing)) return;
      drawing.computeMs += engineMs;
      drawing.model.noteDrawn(engineMs);
      callTimes.noteDecoding(drawing.kind, engineMs);
      this.notePassedOver([drawing]);
      const next = drawing.took(trajectory, picture);
      if (!upscaler)
        for (const { index, image } of next) report({ type: 'picture', id, index, picture: image, upscaled: false });
      if (drawing.undecoded.length === 0) decoded(drawing);
    } catch (error) {
      await this.outcomes.decodingFailed(drawing, asOutOfMemory(error), lane);
    } finally {
      drawing.underWay.delete(trajectory);
    }
  }

  private notePassedOver(moved: readonly DrawingInProgress[]): void {
    for (const drawing of this.host.drawings())
      if (moved.includes(drawing) || drawing.underWay.size === 0) drawing.passedOver = passedOverAfter(drawing, moved);
  }

  /** Whether each lane has room for one of its pictures: for a call of the U-Net, and for decoding. */
  hasRoomInLanes(drawing: DrawingInProgress): boolean {
    const [{ rows }] = drawing.trajectories;
    return this.host.registry.hasRoomInLanes(drawing.command.model.key, callsOf(drawing, rows));
  }

  /** Makes room for a call of so many rows, and for decoding a picture. */
  private reserve(drawing: DrawingInProgress, rows: number, lane?: Lane): Promise<void> {
    return this.host.registry.reserve(drawing.command.model.key, callsOf(drawing, rows), lane);
  }

  /** Nobody else moves these pictures on meanwhile. */
  private async underWay(parts: readonly Part[], work: () => Promise<void>): Promise<void> {
    for (const { candidate, pictures } of parts)
      for (const { trajectory } of pictures) candidate.underWay.add(trajectory);
    try {
      await work();
    } finally {
      for (const { candidate, pictures } of parts)
        for (const { trajectory } of pictures) candidate.underWay.delete(trajectory);
    }
  }

  /** Tells how far these are, with at most one preview a call: of the drawing that has waited longest for one. */
  private tell(drawings: readonly DrawingInProgress[]): void {
    const { report, end } = this.host;
    const now = performance.now();
    const [due] = drawings
      .filter((drawing) => drawing.previewDueMs(now) >= 0)
      .sort((a, b) => b.previewDueMs(now) - a.previewDueMs(now));
    for (const drawing of drawings)
      try {
        const preview = drawing === due && { preview: drawing.preview(now) };
        report({ type: 'progress', id: drawing.command.id, ...drawing.progress, ...preview });
      } catch (error) {
        end(drawing, error);
      }
  }
}

const rowsOf = (pictures: Part['pictures']): number => pictures.reduce((sum, { rows }) => sum + rows, 0);

const rowsOfParts = (parts: readonly Part[]): number => parts.reduce((sum, { pictures }) => sum + rowsOf(pictures), 0);

const trajectoriesOf = (parts: readonly Part[]): Trajectory[] =>
  parts.flatMap(({ pictures }) => pictures.map(({ trajectory }) => trajectory));

function callsOf({ pipeline, command: { request } }: DrawingInProgress, rows: number): DrawingCalls {
  const { facts } = pipeline;
  return {
    unet: pipeline.rowsOfCall(rows) * bytesPerRow(facts, request),
    vaeDecoder: decodeBytes(facts, request),
  };
}

function rendererOf({ pipeline, model }: DrawingInProgress, lane: Lane | undefined): Pick<Renderer, 'step' | 'decode'> {
  return lane === undefined ? pipeline : model.inLanes![lane];
}
