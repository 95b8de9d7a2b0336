import { NotFiniteError, OutOfMemoryError } from '@app/diffusion';
import { LruMap } from '@app/process';
import type { Lane } from '../lane';
import type { ModelRegistry } from '../models/model-registry';
import { nextTry } from '../models/next-try';
import { keptKinds } from '../time/call-times';
import type { DrawingInProgress } from './drawing-in-progress';
import type { CallPart, Suspicion } from './next-call';
import { halfOf, type RowLimits } from './row-limits';

/** What the consequences of a piece of work depend on, and what they tell the engine. */
export interface OutcomesHost {
  registry: Pick<ModelRegistry, 'releaseIdle'>;
  rowLimits: RowLimits;
  drawings: () => readonly DrawingInProgress[];
  isEnlarging: () => boolean;
  /** Whether a picture is decoded beside calls of the U-Net, even those of its own drawing. */
  hasSecondThread: boolean;
  end: (drawing: DrawingInProgress, error: unknown) => void;
  /** It is drawn anew with nothing beside it. */
  drawAlone: (drawing: DrawingInProgress) => void;
}

/** A call of the U-Net. */
interface Call {
  parts: readonly CallPart<DrawingInProgress>[];
  /** Of all parts. */
  rows: number;
  lane?: Lane;
}

/** What follows from how a piece of work went: what is tried again and how, and how many rows later calls may have. */
export class PieceOutcomes {
  /** Kinds of which a shared call failed, and none of its drawings alone so far, with the rows of that call. */
  private readonly unexplained = new LruMap<number>(keptKinds);

  constructor(private readonly host: OutcomesHost) {}

  /**
   * Learns that a call may have so many rows, and fewer than an earlier one if that is what has helped.
   * @param tried what its drawings were suspected of when it began: one that began before the failure, in another lane,
   * tells nothing of it
   */
  stepWentWell({ parts, rows }: Call, tried: ReadonlyMap<DrawingInProgress, Suspicion | undefined>): void {
    const { rowLimits } = this.host;
    const [{ candidate: first }] = parts;
    const { kind } = first;
    rowLimits.noteCall(kind);
    for (const { candidate } of parts) {
      const { suspicion } = candidate;
      if (!suspicion || suspicion !== tried.get(candidate)) continue;
      if (suspicion.mostRows < Infinity) rowLimits.lower(kind, suspicion.mostRows);
      candidate.suspicion = undefined;
    }
    // Alone each may go well where all together do not.
    if (parts.length > 1 && rows >= (this.unexplained.get(kind) ?? Infinity)) this.unexplained.delete(kind);
  }

  /**
   * A call that ran out of memory is tried with half of its rows. One that failed otherwise is tried by each of its
   * drawings alone, so that it fails only the one at fault; if none is, the graph may not take so many rows, and later
   * calls have half. A drawing that fails alone is tried with half of its own rows, down to a single picture. What
   * failed in the middle of a scheduler's step cannot be tried again.
   */
  async stepFailed({ parts, rows, lane }: Call, error: unknown): Promise<void> {
    const drawn = parts.find(({ candidate }) => this.isDrawn(candidate));
    // A model that nobody draws with may be released, and then its calls fail. That tells nothing of their rows.
    if (!drawn) return;
    if (parts.some(({ candidate }) => isSpoilt(candidate))) return this.beginAnew(parts, error);
    const { candidate, pictures } = drawn;
    const [{ rows: rowsOfPicture }] = pictures;
    const halveRows = () => this.host.rowLimits.halve(candidate.kind, rows, rowsOfPicture);
    if (parts.length === 1) this.unexplained.delete(candidate.kind);
    if (error instanceof OutOfMemoryError) return this.endUnlessRoom(candidate, error, { lane, halveRows });
    if (parts.length > 1) return this.suspectAll({ parts, rows }, halveRows);
    const fewer = error instanceof NotFiniteError ? undefined : halfOf(rows, rowsOfPicture);
    if (fewer === undefined) return this.endUnlessRoom(candidate, error, { lane });
    candidate.suspect(fewer);
  }

  /** A picture could not be decoded. */
  decodingFailed(drawing: DrawingInProgress, error: unknown, lane?: Lane): Promise<void> {
    return this.endUnlessRoom(drawing, error, { lane });
  }

  /** Has each of these tried alone. The second time, with nobody found at fault, it is the number of rows. */
  private suspectAll({ parts, rows }: Call, halveRows: () => boolean): void {
    const [{ candidate: first }] = parts;
    for (const { candidate } of parts) candidate.suspect();
    if (this.unexplained.get(first.kind) !== undefined) halveRows();
    this.unexplained.set(first.kind, rows);
  }

  /** Draws anew what a failed step has spoilt, with nothing beside it; the others go on. */
  private async beginAnew(parts: Call['parts'], error: unknown): Promise<void> {
    const { registry, end, drawAlone } = this.host;
    const hasMadeRoom = await registry.releaseIdle();
    for (const drawing of parts.map(({ candidate }) => candidate).filter(isSpoilt))
      if (this.isDrawn(drawing)) (hasMadeRoom || !drawing.command.alone ? drawAlone : end)(drawing, error);
  }

  /** Ends a drawing, or draws it anew alone, unless it is tried again as it is. */
  private async endUnlessRoom(
    drawing: DrawingInProgress,
    error: unknown,
    { lane, halveRows }: { lane?: Lane; halveRows?: () => boolean },
  ): Promise<void> {
    const { registry, drawings, isEnlarging, hasSecondThread, end, drawAlone } = this.host;
    if (!this.isDrawn(drawing)) return;
    const mayBeBeside = lane !== undefined || (hasSecondThread && !drawing.command.alone);
    const hasOthers = () => mayBeBeside || drawings().length > 1 || isEnlarging();
    const next = await nextTry(error, { halveRows, registry, hasOthers });
    // It may have been given up while idle models were released.
    if (next === 'again' || !this.isDrawn(drawing)) return;
    if (next === 'alone') drawAlone(drawing);
    else end(drawing, error);
  }

  /** Whether it is not given up, nor at its end. */
  isDrawn(drawing: DrawingInProgress): boolean {
    return this.host.drawings().includes(drawing);
  }
}

const isSpoilt = ({ trajectories }: DrawingInProgress): boolean => trajectories.some((each) => each.isSpoilt);
