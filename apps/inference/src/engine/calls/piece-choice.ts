import type { CallTimes } from '../time/call-times';
import type { DrawingInProgress } from './drawing-in-progress';
import type { EngineShares } from '../time/engine-shares';
import { type Lane, laneCount } from '../lane';
import type { Pieces } from './pieces';
import type { RowLimits } from './row-limits';
import { chooseCall, inOrder, notAhead } from './next-call';

/** What the choice depends on. */
export interface PieceChoiceHost {
  pieces: Pieces;
  rowLimits: RowLimits;
  callTimes: CallTimes;
  shares: EngineShares;
  drawings: () => readonly DrawingInProgress[];
}

/** A piece of an engine's work, to be begun. */
export type Piece = () => Promise<void>;

/** Chooses the next piece of an engine's work: a call of the U-Net, or decoding a picture. */
export class PieceChoice {
  constructor(private readonly host: PieceChoiceHost) {}

  /** Drawings that have something to draw that nobody is at. */
  withWork(): DrawingInProgress[] {
    return this.host.drawings().filter((drawing) => drawing.pictures.length > 0 || drawing.toDecode);
  }

  /** A call of the U-Net with the pictures that go next, or decoding one; only of owners who are not ahead. */
  nextPiece(lane?: Lane): Piece | undefined {
    const inTurn = this.inTurn(this.withWork());
    return this.decodingOf(inTurn[0], lane) ?? this.stepOf(inTurn, lane);
  }

  /** A call of the U-Net, where pictures are decoded beside it. */
  nextStep(): Piece | undefined {
    return this.stepOf(this.inTurn(this.withWork().filter(({ pictures }) => pictures.length > 0)));
  }

  /** Decoding a picture, where calls of the U-Net are made beside it. */
  nextDecoding(): Piece | undefined {
    const [first] = this.inTurn(this.withWork().filter(({ toDecode }) => toDecode));
    return this.decodingOf(first);
  }

  private decodingOf(drawing: DrawingInProgress | undefined, lane?: Lane): Piece | undefined {
    const picture = drawing?.toDecode;
    return drawing && picture && (() => this.host.pieces.decode(drawing, picture, lane));
  }

  /** Those of owners whose turn it is, the first to go first. */
  private inTurn(drawings: readonly DrawingInProgress[]): DrawingInProgress[] {
    const { callTimes, shares } = this.host;
    return inOrder(notAhead(drawings, shares, callTimes), callTimes);
  }

  private stepOf(inTurn: readonly DrawingInProgress[], lane?: Lane): Piece | undefined {
    const { callTimes, pieces } = this.host;
    const denoising = inTurn.filter(({ pictures }) => pictures.length > 0);
    const parts = chooseCall(denoising, {
      decodeRows: (kind) => callTimes.decodeRows(kind),
      maxRows: (group) => this.maxRows(group, lane),
      isSharingSooner: (kind, rows) => callTimes.isSharingSooner(kind, rows, lane),
    });
    return parts.length > 0 ? () => pieces.step(parts, lane) : undefined;
  }

  /** Each lane has its part of the pictures. */
  private maxRows(group: string, lane: Lane | undefined): number {
    const drawings = this.host.drawings();
    const rowsIn = (drawing: DrawingInProgress) =>
      drawing.undecoded.reduce((sum, each) => sum + (drawing.groupOf(each) === group ? each.rows : 0), 0);
    const member = drawings.find((drawing) => rowsIn(drawing) > 0)!;
    const most = this.host.rowLimits.of(member.kind, member, lane);
    if (lane === undefined) return most;
    const rows = drawings.reduce((sum, drawing) => sum + rowsIn(drawing), 0);
    return Math.min(most, Math.ceil(rows / laneCount));
  }
}
