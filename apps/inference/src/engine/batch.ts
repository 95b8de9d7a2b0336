import type { DrawingInProgress, Picture } from './drawing';
import type { Turns } from './turns';

/** The pictures of one call of the U-Net, which moves each of them on by a step, with their drawings. */
export type Batch = readonly { drawing: DrawingInProgress; pictures: readonly Picture[] }[];

/** Lead that an owner may have over another, in multiples of the time that the other's shortest drawing needs. */
const leadFactor = 2;
/** Multiple of its own whole time after which a drawing that waits goes before those that have less left to do. */
const patience = 10;
/** Rows that a drawing may have left to share the first one's call, in multiples of all rows of the first one. */
const shortFactor = 1.5;

/**
 * The drawings of owners who are not far ahead. An owner is far ahead of another by more than `leadFactor` times the time
 * that the other's shortest drawing needs. So a short drawing waits for another owner's long one for a multiple of its own
 * time at most, and owners who have had about as much go on side by side. At least one owner is never far ahead.
 */
export function withoutOwnersAhead<T extends { owner: string; msLeft: number }>(
  all: readonly T[],
  turns: Pick<Turns, 'usedMsOf'>,
): T[] {
  const shortest = new Map<string, number>();
  for (const { owner, msLeft } of all) shortest.set(owner, Math.min(msLeft, shortest.get(owner) ?? Infinity));
  const limits = [...shortest].map(([owner, ms]) => ({ owner, limit: turns.usedMsOf(owner) + leadFactor * ms }));
  return all.filter(({ owner: one }) =>
    limits.every(({ owner, limit }) => owner === one || turns.usedMsOf(one) <= limit),
  );
}

/**
 * The drawings whose owner's turn it is, in their order: suspects, then drawings that have waited for too long, then those
 * that have least left to do.
 */
export function inOrderOfTurns(
  drawings: readonly DrawingInProgress[],
  turns: Pick<Turns, 'usedMsOf'>,
): DrawingInProgress[] {
  const all = drawings.map((drawing) => {
    const { owner, msLeft } = drawing;
    return { drawing, owner, msLeft, order: orderOf(drawing, msLeft) };
  });
  // Drawings of equal order stay in the order in which they began.
  return withoutOwnersAhead(all, turns)
    .sort((one, other) => one.order - other.order)
    .map(({ drawing }) => drawing);
}

/** The order of a drawing among others, the smallest first. */
function orderOf({ isSuspect, waitedMs, computeMs }: DrawingInProgress, msLeft: number): number {
  if (isSuspect) return -1;
  return waitedMs > patience * (computeMs + msLeft) ? 0 : msLeft;
}

/**
 * The batch of the next call: the first drawing's pictures, and those of all others that may share its call, up to a
 * number of rows. Adapters are inputs of the U-Net with values for each row of a call, so pictures with different adapters
 * share a call if these have the same ranks, and pictures without adapters share any.
 * @param drawings with pictures to denoise, in the order of `inOrderOfTurns`
 * @param maxRows of the call; one picture is taken in any case
 */
export function batchOf([first, ...others]: readonly DrawingInProgress[], maxRows: number): Batch {
  let { adapterRanks } = first;
  const batch: Batch[number][] = [];
  let rows = 0;
  for (const drawing of [first, ...others]) {
    if (drawing !== first && !mayJoin(drawing, first, adapterRanks)) continue;
    const pictures = drawing.denoising.filter((picture) => {
      if (rows > 0 && rows + picture.rows > maxRows) return false;
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
