import type { Drawing, Picture } from './drawing';
import type { Turns } from './turns';

/** The pictures of one call of the U-Net, grouped by drawing. The call does one step of each picture. */
export type Batch = readonly { drawing: Drawing; pictures: readonly Picture[] }[];

/** Lead in device time that an owner may have over another: a multiple of what the other's shortest drawing needs. */
const leadFactor = 2;
/** Multiple of a drawing's own time after which it has waited too long, and goes before those with less left to do. */
const maxWaitFactor = 10;
/** Most rows left of a drawing that joins a call, as a multiple of all rows of the first one, which it slows down. */
const joinFactor = 1.5;

/**
 * The drawings of owners who are not far ahead. An owner is far ahead if its device time exceeds another's by more than
 * `leadFactor` times what the other's shortest drawing still needs. So a short drawing waits for long ones of other
 * owners no longer than a multiple of its own time, and owners with about the same device time share calls.
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
 * The drawings of all owners whose turn it is: first suspects, then drawings that have waited too long, then the one
 * with the least time left, and so on.
 */
export function inOrderOfTurns(drawings: readonly Drawing[], turns: Pick<Turns, 'usedMsOf'>): Drawing[] {
  const all = drawings.map((drawing) => {
    const { owner, msLeft } = drawing;
    return { drawing, owner, msLeft, order: orderOf(drawing, msLeft) };
  });
  // The sort is stable: drawings of equal order stay in the order in which they began.
  return withoutOwnersAhead(all, turns)
    .sort((one, other) => one.order - other.order)
    .map(({ drawing }) => drawing);
}

/** Number by which drawings are sorted. */
function orderOf({ isSuspect, waitedMs, computeMs }: Drawing, msLeft: number): number {
  if (isSuspect) return -1;
  return waitedMs > maxWaitFactor * (computeMs + msLeft) ? 0 : msLeft;
}

/**
 * The batch of the next call: pictures of the first drawing, and of the others that may share its call. Adapters are
 * inputs of the U-Net with values for each row, so pictures with different adapters share a call if the adapters have
 * the same ranks; pictures without adapters share it with any.
 * @param drawings with pictures to denoise, in the order of `inOrderOfTurns`
 * @param maxRows of the call; one picture is taken in any case
 */
export function batchOf([first, ...others]: readonly Drawing[], maxRows: number): Batch {
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

function mayJoin(drawing: Drawing, first: Drawing, ranks: string): boolean {
  if (first.isSuspect || drawing.isSuspect || drawing.callKey !== first.callKey) return false;
  const isShort = drawing.rowsLeft <= joinFactor * first.rowsInAll;
  return isShort && (drawing.adapterRanks === '' || ranks === '' || drawing.adapterRanks === ranks);
}
