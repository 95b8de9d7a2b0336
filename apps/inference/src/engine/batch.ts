import type { DrawingInProgress, Picture } from './drawing';
import type { Turns } from './turns';

/** Pictures of some drawings, which one call of the U-Net moves on by a step. */
export type Batch = readonly { drawing: DrawingInProgress; pictures: readonly Picture[] }[];

/** An owner waits once it is ahead of another by this multiple of what the other's shortest drawing still needs. */
const leadFactor = 2;
/** A drawing that has waited for this multiple of what it takes in all goes before all that began later. */
const patience = 10;
/** A drawing with more rows left than this multiple of the first one's whole work would only slow that down. */
const shortFactor = 1.5;

/**
 * The drawings or tasks whose owner is not too far ahead of another: at least one, if there is any. A drawing so waits
 * for another owner for a multiple of its own time at most, and a long one is mostly done before the next one begins.
 */
export function notAhead<C extends { owner: string; msLeft: number }>(all: readonly C[], had: Pick<Turns, 'of'>): C[] {
  const shortest = new Map<string, number>();
  for (const { owner, msLeft } of all) shortest.set(owner, Math.min(msLeft, shortest.get(owner) ?? Infinity));
  const limits = [...shortest].map(([owner, ms]) => ({ owner, limit: had.of(owner) + leadFactor * ms }));
  const isAhead = (one: string): boolean => limits.some(({ owner, limit }) => owner !== one && had.of(one) > limit);
  const ahead = new Set([...shortest.keys()].filter(isAhead));
  return all.filter(({ owner }) => !ahead.has(owner));
}

/** The drawings whose owner's turn it is: first what has waited for too long, then what has least left to do. */
export function inTurn(drawings: readonly DrawingInProgress[], had: Pick<Turns, 'of'>): DrawingInProgress[] {
  const all = drawings.map((drawing) => {
    const { owner, isSuspect, msLeft, waitedMs, computeMs } = drawing;
    const hasWaited = waitedMs > patience * (computeMs + msLeft);
    return { drawing, owner, msLeft, place: isSuspect ? -1 : hasWaited ? 0 : msLeft };
  });
  return notAhead(all, had)
    .sort((one, other) => one.place - other.place)
    .map(({ drawing }) => drawing);
}

/**
 * The first drawing's pictures, and those of all others that may share its call, up to a number of rows.
 * @param ordered drawings with pictures to denoise, as `inTurn` puts them
 * @param mostRows of a call with the first one's pictures; one picture is taken in any case
 */
export function batchOf([first, ...others]: readonly DrawingInProgress[], mostRows: number): Batch {
  let { ranks } = first;
  const batch: Batch[number][] = [];
  let rows = 0;
  for (const drawing of [first, ...others]) {
    if (drawing !== first && !mayJoin(drawing, first, ranks)) continue;
    const pictures = drawing.denoising.filter((picture) => {
      if (rows > 0 && rows + picture.rows > mostRows) return false;
      rows += picture.rows;
      return true;
    });
    if (pictures.length === 0) continue;
    batch.push({ drawing, pictures });
    ranks ||= drawing.ranks;
  }
  return batch;
}

function mayJoin(drawing: DrawingInProgress, first: DrawingInProgress, ranks: string): boolean {
  if (first.isSuspect || drawing.isSuspect || drawing.kind !== first.kind) return false;
  const isShort = drawing.rowsLeft <= shortFactor * first.rowsInAll;
  return isShort && (drawing.ranks === '' || ranks === '' || drawing.ranks === ranks);
}
