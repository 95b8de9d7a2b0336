/** What a failed call has left: the rows of the next one, which is the drawing's own. */
export interface Suspicion {
  /**
   * At most so many: half of those of its own call that failed. If it goes well, the rows were too many, for all of its
   * kind. `Infinity` after a call that others shared.
   */
  readonly mostRows: number;
}

/** A drawing in progress, as far as its place in the next call depends on it. */
export interface Candidate {
  owner: string;
  /** Of its pictures: equal kinds take equally long. */
  kind: string;
  /** Rows of the U-Net that it still needs, over all its pictures and steps, and how many it needed at the start. */
  remainingWork: number;
  totalWork: number;
  /** All its pictures, and those that still have to be decoded. */
  trajectories: readonly unknown[];
  undecoded: readonly unknown[];
  /** How often others of its owner went before it, less what its own calls have made up for. */
  passedOver: number;
  /** Set after a failed call: the next one is its own, and shows whose fault it was. */
  suspicion?: Suspicion;
  /** Its pictures that are not done, those that have most steps behind them first. */
  pictures: readonly {
    /** Of those that may share a call. */
    group: string;
    rows: number;
  }[];
}

/** What a drawing has in one call of the U-Net, all of whose pictures are of one group. */
export interface CallPart<C extends Candidate> {
  candidate: C;
  pictures: C['pictures'];
}

/**
 * An owner waits once it is ahead of another who has something to draw by the time that this many rows of the other's
 * take, or as many as the other's drawing with least left still needs. With fewer rows the owners' pictures would take
 * turns at every step, and all would end late; with these a picture is mostly finished first. They are three guided
 * pictures of 20 steps, or two of the 30 that are the default: two rows each step. A short drawing does not wait for
 * longer than its own rows take, as measured for its kind: beside any number of another owner's it takes at most twice
 * as long as alone, and one call of the other's.
 */
const aheadRows = 120;
/** A drawing that this many calls of its owner have passed over is overdue: it is part of its owner's next call. */
const mostPassedOver = 30;
/**
 * What a call with an overdue drawing takes from its count of calls that passed it over. One of its owner without it
 * adds one, so it has every fourth of these, however many shorter drawings come.
 */
const madeUpByCall = 3;
/**
 * A drawing that has more work left than this multiple of the leader's whole work does not share the leader's call: the
 * leader would only wait for it.
 */
const shortFactor = 1.5;

/** What owners have had of the engine. */
export interface OwnerShares {
  /** Milliseconds, counted for all owners from the same start. */
  of(owner: string): number;
}

/** What rows of calls take. */
export interface RowTimes {
  /** Milliseconds; 0 for a kind that is not measured, whose calls go first and so are measured soon. */
  rowMs(kind?: string): number;
}

/** What pictures take. */
export interface PictureTimes extends RowTimes {
  /** Rows of a call that take as long as decoding a picture of this kind; 0 if that is not known. */
  decodeRows(kind: string): number;
}

/** What the choice depends on beside the candidates. */
export interface CallFacts extends Pick<PictureTimes, 'decodeRows'> {
  /** Rows of one call; a picture that has more is drawn alone. */
  maxRows: (group: string) => number;
  /** Whether pictures with `rows` rows in all are done sooner, on average, in shared calls than one after the other. */
  isSharingSooner: (kind: string, rows: number) => boolean;
}

/** Those whose owner is not ahead of the others: at least one, if there is any. */
export function notAhead<C extends { owner: string; kind?: string; remainingWork?: number }>(
  candidates: readonly C[],
  shares: OwnerShares,
  times: RowTimes,
): C[] {
  // By how many milliseconds others may be ahead of each owner.
  const leads = new Map<string, number>();
  for (const { owner, kind, remainingWork = aheadRows } of candidates) {
    const lead = Math.min(remainingWork, aheadRows) * times.rowMs(kind);
    leads.set(owner, Math.min(lead, leads.get(owner) ?? Infinity));
  }
  const most = (owner: string): number =>
    Math.min(...[...leads].filter(([other]) => other !== owner).map(([other, lead]) => shares.of(other) + lead));
  const entitled = new Set([...leads.keys()].filter((owner) => shares.of(owner) <= most(owner)));
  return candidates.filter(({ owner }) => entitled.has(owner));
}

const isOverdue = ({ passedOver }: Candidate): boolean => passedOver >= mostPassedOver;

const workOf = ({ remainingWork, undecoded }: Candidate, decodeRows: number): number =>
  remainingWork + undecoded.length * decodeRows;

/** What a drawing has left to do, in milliseconds of the device; 0 for a kind that is not measured. */
export function msLeft(candidate: Candidate, times: PictureTimes): number {
  return workOf(candidate, times.decodeRows(candidate.kind)) * times.rowMs(candidate.kind);
}

/**
 * Whether drawings of others go before something that holds everybody up for so many milliseconds, as loading a model
 * does: those that would be done by then. Both times are counted from what their owner has had, so nobody who keeps
 * coming has it wait for longer than it takes itself.
 */
export function goesAfterDrawings(
  { owner, ms }: { owner: string; ms: number },
  drawings: readonly { owner: string; msLeft: number }[],
  shares: OwnerShares,
): boolean {
  const overAt = shares.of(owner) + ms;
  return drawings.some((other) => other.owner !== owner && shares.of(other.owner) + other.msLeft < overAt);
}

/**
 * Who goes first: who was passed over too often, then who has least left to do, by the time that it takes. Until that
 * is measured it counts as none, and among those the rows decide.
 */
export function inOrder<C extends Candidate>(candidates: readonly C[], times: PictureTimes): C[] {
  const rowsOf = (each: C): number => workOf(each, times.decodeRows(each.kind));
  const byWork = [...candidates].sort((a, b) => msLeft(a, times) - msLeft(b, times) || rowsOf(a) - rowsOf(b));
  const overdue = byWork.filter(isOverdue).sort((a, b) => b.passedOver - a.passedOver);
  return [...overdue, ...byWork.filter((candidate) => !isOverdue(candidate))];
}

/**
 * How often a drawing counts as passed over after a piece of work. Only drawings of its own owner pass it over: between
 * owners what they have had decides, or an owner of several long drawings would have a part of nearly every call.
 */
export function passedOverAfter(
  drawing: Pick<Candidate, 'owner' | 'passedOver'>,
  moved: readonly Pick<Candidate, 'owner'>[],
): number {
  const { owner, passedOver } = drawing;
  if (moved.includes(drawing)) return Math.max(0, Math.min(passedOver, mostPassedOver) - madeUpByCall);
  return moved.some((other) => other.owner === owner) ? passedOver + 1 : passedOver;
}

/**
 * Chooses what the next call of the U-Net advances. A call of many rows takes less time for each of them, and keeps
 * each waiting for longer. Where the time is much less, all go together. Where it is not, and while there is room
 * for more, all go but the one that has most left to do: that makes the mean of all waits short. Once a call would
 * be full, it is filled.
 * @param ordered those with pictures to denoise, as `inOrder` puts them
 * @returns what each drawing has in the next call; nothing if there is none
 */
export function chooseCall<C extends Candidate>(ordered: readonly C[], facts: CallFacts): CallPart<C>[] {
  const leader = ordered.find(({ suspicion }) => suspicion) ?? ordered[0];
  if (!leader) return [];
  const { kind } = leader;
  const [{ group, rows }] = leader.pictures;
  const most = facts.maxRows(group);
  if (leader.suspicion) return fill([leader], group, Math.min(most, leader.suspicion.mostRows));

  // All of a group are of one kind, so their rows take equally long.
  const decodeRows = facts.decodeRows(kind);
  const longest = shortFactor * (leader.totalWork + leader.trajectories.length * decodeRows);
  const sharing = [leader, ...ordered.filter((candidate) => candidate !== leader && !candidate.suspicion)]
    .filter(({ pictures }) => pictures.some((picture) => picture.group === group))
    .filter((candidate) => isOverdue(candidate) || workOf(candidate, decodeRows) <= longest);
  const isFull = sharing.reduce((sum, candidate) => sum + rowsIn(candidate, group), 0) >= most;
  const sooner = Math.max(1, sharing.filter(isOverdue).length, sharing.length - 1);
  return fill(isFull || facts.isSharingSooner(kind, rows) ? sharing : sharing.slice(0, sooner), group, most);
}

function rowsIn({ pictures }: Candidate, group: string): number {
  return pictures.reduce((sum, picture) => sum + (picture.group === group ? picture.rows : 0), 0);
}

/** As many pictures of these drawings as a call takes, at least one. */
function fill<C extends Candidate>(candidates: readonly C[], group: string, most: number): CallPart<C>[] {
  let rows = 0;
  return candidates
    .map((candidate) => ({
      candidate,
      pictures: candidate.pictures.filter((picture) => {
        if (picture.group !== group || (rows > 0 && rows + picture.rows > most)) return false;
        rows += picture.rows;
        return true;
      }),
    }))
    .filter(({ pictures }) => pictures.length > 0);
}
