import type { DeviceTime } from './device-time';
import type { Picture, RunningTask } from './running-task';

/** The pictures of one call of the denoiser, grouped by task. The call does one step of each picture. */
export type Batch = readonly { running: RunningTask; pictures: readonly Picture[] }[];

/** Lead in device time that an owner may have over another: a multiple of what the other's shortest task needs. */
const leadFactor = 2;
/** Multiple of a task's own time after which it has waited too long, and goes before those with less left to do. */
const maxWaitFactor = 10;
/** Most rows left of a task that joins a call, as a multiple of all rows of the first one, which it slows down. */
const joinFactor = 1.5;

/**
 * The tasks of owners who are not far ahead. An owner is far ahead if its device time exceeds another's by more than
 * `leadFactor` times what the other's shortest task still needs. So a short task waits for long ones of other
 * owners no longer than a multiple of its own time, and owners with about the same device time share calls.
 */
export function withoutOwnersAhead<T extends { owner: string; msLeft: number }>(
  all: readonly T[],
  deviceTime: Pick<DeviceTime, 'usedMsOf'>,
): T[] {
  const shortest = new Map<string, number>();
  for (const { owner, msLeft } of all) shortest.set(owner, Math.min(msLeft, shortest.get(owner) ?? Infinity));
  const limits = [...shortest].map(([owner, ms]) => ({ owner, limit: deviceTime.usedMsOf(owner) + leadFactor * ms }));
  return all.filter(({ owner: one }) =>
    limits.every(({ owner, limit }) => owner === one || deviceTime.usedMsOf(one) <= limit),
  );
}

/**
 * The tasks of all owners whose turn it is: first suspects, then tasks that have waited too long, then the one
 * with the least time left, and so on.
 */
export function inOrderOfTurns(tasks: readonly RunningTask[], deviceTime: Pick<DeviceTime, 'usedMsOf'>): RunningTask[] {
  const all = tasks.map((running) => {
    const { owner, msLeft } = running;
    return { running, owner, msLeft, order: orderOf(running, msLeft) };
  });
  // The sort is stable: tasks of equal order stay in the order in which they began.
  return withoutOwnersAhead(all, deviceTime)
    .sort((one, other) => one.order - other.order)
    .map(({ running }) => running);
}

function orderOf({ isSuspect, waitedMs, computeMs }: RunningTask, msLeft: number): number {
  if (isSuspect) return -1;
  return waitedMs > maxWaitFactor * (computeMs + msLeft) ? 0 : msLeft;
}

/**
 * The batch of the next call: pictures of the first task, and of the others that may share its call. Adapters are
 * inputs of the denoiser with values for each row, so pictures with different adapters share a call if the adapters
 * have the same ranks; pictures without adapters share it with any.
 * @param tasks with pictures to denoise, in the order of `inOrderOfTurns`
 * @param maxRows of the call; one picture is taken in any case
 */
export function batchOf([first, ...others]: readonly RunningTask[], maxRows: number): Batch {
  let { adapterRanks } = first;
  const batch: Batch[number][] = [];
  let rows = 0;
  for (const running of [first, ...others]) {
    if (running !== first && !mayJoin(running, first, adapterRanks)) continue;
    const pictures = running.denoising.filter((picture) => {
      if (rows > 0 && rows + picture.rows > maxRows) return false;
      rows += picture.rows;
      return true;
    });
    if (pictures.length === 0) continue;
    batch.push({ running, pictures });
    adapterRanks ||= running.adapterRanks;
  }
  return batch;
}

function mayJoin(other: RunningTask, first: RunningTask, ranks: string): boolean {
  if (first.isSuspect || other.isSuspect || other.callKey !== first.callKey) return false;
  const isShort = other.rowsLeft <= joinFactor * first.rowsInAll;
  return isShort && (other.adapterRanks === '' || ranks === '' || other.adapterRanks === ranks);
}
