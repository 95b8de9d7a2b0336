import type { DrawingInProgress, Picture } from './drawing';
import type { Turns } from './turns';

/** Pictures of some drawings, which one call of the U-Net moves on by a step. */
export type Batch = readonly { drawing: DrawingInProgress; pictures: readonly Picture[] }[];

/** How much more time than another an owner may have had: this multiple of what the other's shortest drawing needs. */
const leadFactor = 2;
/** A drawing that has waited for this multiple of its own whole time goes before those that have less left to do. */
const patience = 10;
/** A drawing with more rows left than this multiple of all rows of the first one would only slow that down. */
const shortFactor = 1.5;

/**
 * The drawings or tasks whose owner's turn it is. An owner who has had much more of the device than another is left out
 * until the other has caught up, so a short drawing waits for a long one of another owner for a multiple of its own
 * time at most. Those who have had about as much go on side by side. Somebody is always left.
 */
export function notAhead<C extends { owner: string; msLeft: number }>(
  all: readonly C[],
  turns: Pick<Turns, 'msOf'>,
): C[] {
  const shortest = new Map<string, number>();
  for (const { owner, msLeft } of all) shortest.set(owner, Math.min(msLeft, shortest.get(owner) ?? Infinity));
  const limits = [...shortest].map(([owner, ms]) => ({ owner, limit: turns.msOf(owner) + leadFactor * ms }));
  const isAhead = (one: string): boolean => limits.some(({ owner, limit }) => owner !== one && turns.msOf(one) > limit);
  const ahead = new Set([...shortest.keys()].filter(isAhead));
  return all.filter(({ owner }) => !ahead.has(owner));
}

/**
 * The drawings whose owner's turn it is, in their order: one whose call failed beside others is tried first, then comes
 * what has waited for too long, then what has least left to do.
 */
export function inTurn(drawings: readonly DrawingInProgress[], turns: Pick<Turns, 'msOf'>): DrawingInProgress[] {
  const all = drawings.map((drawing) => {
    const { owner, isSuspect, msLeft, waitedMs, computeMs } = drawing;
    const hasWaited = waitedMs > patience * (computeMs + msLeft);
    // Drawings of equal order stay in the order in which the drawings began.
    return { drawing, owner, msLeft, order: isSuspect ? -1 : hasWaited ? 0 : msLeft };
  });
  return notAhead(all, turns)
    .sort((one, other) => one.order - other.order)
    .map(({ drawing }) => drawing);
}

/**
 * The first drawing's pictures, and those of all others that may share its call, up to a number of rows. Adapters are
 * inputs of the U-Net with values for each row of a call, so pictures of different Fine-Tunes share one wherever their
 * adapters have the same ranks, and pictures of the model alone go with any.
 * @param ordered drawings with pictures to denoise, as `inTurn` puts them
 * @param mostRows of a call with the first one's pictures; one picture is taken in any case
 */
export function batchOf([first, ...others]: readonly DrawingInProgress[], mostRows: number): Batch {
  let { adapterRanks } = first;
  const batch: Batch[number][] = [];
  let rows = 0;
  for (const drawing of [first, ...others]) {
    if (drawing !== first && !mayJoin(drawing, first, adapterRanks)) continue;
    const pictures = drawing.denoising.filter((picture) => {
      if (rows > 0 && rows + picture.rows > mostRows) return false;
      rows += picture.rows;
      return true;
    });
    if (pictures.length === 0) continue;
    batch.push({ drawing, pictures });
    adapterRanks ||= drawing.adapterRanks;
  }
  return batch;
}

function mayJoin(drawing: DrawingInProgress, first: DrawingInProgress, ranks: string): boolean {
  if (first.isSuspect || drawing.isSuspect || drawing.callKey !== first.callKey) return false;
  const isShort = drawing.rowsLeft <= shortFactor * first.rowsInAll;
  return isShort && (drawing.adapterRanks === '' || ranks === '' || drawing.adapterRanks === ranks);
}
