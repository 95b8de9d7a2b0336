import type { DrawingInProgress, Picture } from './drawing';
import type { Turns } from './turns';

/** What one call of the U-Net moves on by a step: pictures of some drawings. */
export type Batch = readonly { drawing: DrawingInProgress; pictures: readonly Picture[] }[];

/**
 * An owner waits once it is ahead of another by what the other's shortest drawing still needs, or by the time of so many
 * rows: three guided pictures of 20 steps. So a short drawing takes at most twice its time, and one call. With a smaller
 * lead the owners of long drawings would take turns at every step, and all would end late.
 */
const aheadRows = 120;
/** A drawing with more rows left than this multiple of the first one's whole work would only slow that down. */
const shortFactor = 1.5;

/** Those whose owner is not ahead of the others: at least one, if there is any. */
export function notAhead<C extends { owner: string; lead: number }>(
  candidates: readonly C[],
  had: Pick<Turns, 'of'>,
): C[] {
  const leads = new Map<string, number>();
  for (const { owner, lead } of candidates) leads.set(owner, Math.min(lead, leads.get(owner) ?? Infinity));
  const most = (owner: string): number =>
    Math.min(...[...leads].map(([other, lead]) => (other === owner ? Infinity : had.of(other) + lead)));
  const inTurn = new Set([...leads.keys()].filter((owner) => had.of(owner) <= most(owner)));
  return candidates.filter(({ owner }) => inTurn.has(owner));
}

/**
 * The drawings whose owner's turn it is: first what has least left to do, but one that has waited for longer than it
 * needs goes before those that come later.
 */
export function inTurn(drawings: readonly DrawingInProgress[], had: Pick<Turns, 'of'>): DrawingInProgress[] {
  const leadOf = ({ msLeft, rowMs }: DrawingInProgress): number => Math.min(msLeft, aheadRows * rowMs);
  const entitled = notAhead(
    drawings.map((drawing) => ({ owner: drawing.owner, lead: leadOf(drawing), drawing })),
    had,
  );
  const urgency = ({ msLeft, waitedMs }: DrawingInProgress): number => msLeft - waitedMs;
  return entitled
    .map(({ drawing }) => drawing)
    .sort((a, b) => Number(b.isSuspect) - Number(a.isSuspect) || urgency(a) - urgency(b) || a.rowsLeft - b.rowsLeft);
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
