import { type Device, hasCallsInPowersOfTwo, powerOfTwoUpTo } from '@app/diffusion';
import { LruMap } from '@app/process';
import type { DrawingInProgress } from './drawing-in-progress';
import { type Lane, laneCount } from '../lane';
import { bytesPerRow, decodeBytes } from '../memory/picture-memory';
import { keptKinds } from '../time/call-times';

/**
 * The most rows of one call of the U-Net. On the CPU a row of a larger call takes as long as one of these. On a GPU it
 * may take less: where a row of 32 was clearly cheaper than one of 16, a call may have twice as many.
 */
const maxRows = { cpu: 16, gpu: 32 };
/** After so many calls a larger one is tried again: what it lacked may have been another process's for a while. */
const keptCalls = 1_000;

/** Half of the rows of a call, but a whole picture; undefined if it has no more than that. */
export function halfOf(rows: number, rowsOfPicture: number): number | undefined {
  return rows > rowsOfPicture ? Math.max(rowsOfPicture, Math.floor(rows / 2)) : undefined;
}

type Drawn = Pick<DrawingInProgress, 'pipeline' | 'command'>;

/** What the limits depend on beside the device. */
export interface RowLimitFacts {
  /**
   * Bytes that a call of a model's U-Net may take, by a lane or by all threads, when every idle model makes room and
   * one picture has to be decoded as well. In lanes each has so many.
   */
  callBytes: (key: string, decoding: number, lane?: Lane) => number;
  /** Whether a row of a call of so many takes clearly less time than one of half as many, as measured. */
  isCheaperPerRow: (kind: string, rows: number) => boolean;
}

/**
 * How many rows one call of the U-Net may have, for each kind of picture: as many as memory allows, and what earlier
 * calls have shown.
 */
export class RowLimits {
  /** Rows of the kinds of which a larger call failed, and how many calls have gone well since. */
  private readonly learnt = new LruMap<{ rows: number; calls: number }>(keptKinds);

  constructor(
    private readonly device: Device,
    private readonly facts: RowLimitFacts,
  ) {}

  /**
   * Never less than one, so that a picture is tried in any case.
   * @param drawing one with pictures of this kind
   */
  of(kind: string, { pipeline: { facts }, command: { model, request } }: Drawn, lane?: Lane): number {
    const bytes = this.facts.callBytes(model.key, decodeBytes(facts, request), lane);
    const fitting = this.inCalls(Math.floor(bytes / bytesPerRow(facts, request)));
    const most = lane === undefined ? this.most(kind) : Math.floor(this.most(kind) / laneCount);
    return Math.max(1, Math.min(most, this.learntOf(kind), fitting));
  }

  /**
   * Allows calls of a kind at most half of the rows of one that failed for their number. A lower limit stays: the call
   * may have begun before that was learnt.
   * @returns whether that helps: a picture's own rows cannot be parted
   */
  halve(kind: string, rows: number, rowsOfPicture: number): boolean {
    const half = halfOf(rows, rowsOfPicture);
    if (half !== undefined) this.lower(kind, half);
    return half !== undefined;
  }

  /** Allows calls of a kind at most so many rows. */
  lower(kind: string, rows: number): void {
    this.learnt.set(kind, { rows: Math.min(rows, this.learntOf(kind)), calls: 0 });
  }

  /** A call of this kind went well. */
  noteCall(kind: string): void {
    const learnt = this.learnt.get(kind);
    if (learnt && ++learnt.calls >= keptCalls) this.learnt.delete(kind);
  }

  /** Most rows that earlier calls of a kind have left; Infinity where none has shown a limit. */
  private learntOf(kind: string): number {
    return this.learnt.get(kind)?.rows ?? Infinity;
  }

  /** Where calls have 1, 2, 4, 8 … rows, one of 5 takes the memory of 8. */
  private inCalls(rows: number): number {
    return hasCallsInPowersOfTwo(this.device) && rows >= 1 ? powerOfTwoUpTo(rows) : rows;
  }

  private most(kind: string): number {
    if (this.device === 'cpu') return maxRows.cpu;
    return this.facts.isCheaperPerRow(kind, maxRows.gpu) ? 2 * maxRows.gpu : maxRows.gpu;
  }
}
