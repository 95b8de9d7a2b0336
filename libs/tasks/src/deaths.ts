import type { Task } from '@app/domain';

/** Errors, or deaths of workers, after which a task fails for good. */
export const fatalCount = 5;

/**
 * A task's deaths after its worker has fallen silent once more. The first is a suspicion, because any task
 * that was there may have caused it; from then on the task is drawn alone, and what happens before or after
 * that is not its fault.
 */
export const deathsAfter = ({ deaths, drawnAlone }: Pick<Task, 'deaths' | 'drawnAlone'>): number =>
  deaths === 0 || drawnAlone ? deaths + 1 : deaths;
