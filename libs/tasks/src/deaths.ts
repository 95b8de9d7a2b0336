import type { Task } from '@app/domain';

/** Errors, or deaths of workers, after which a task fails for good. */
export const fatalCount = 5;

/** Deaths of workers after which a training fails, unless it has kept a state meanwhile. */
export const fatalDeathsOfTraining = 2 * fatalCount;

/**
 * A task's deaths after its worker has fallen silent once more. The first is a suspicion: any task beside it may have
 * caused it. From then on the task is drawn alone, and only deaths while it is alone count. A training is never alone:
 * drawings beside it may kill the worker, so all deaths count, and more of them are fatal.
 */
export const deathsAfter = ({ kind, deaths, drawnAlone }: Pick<Task, 'kind' | 'deaths' | 'drawnAlone'>): number =>
  kind === 'training' || deaths === 0 || drawnAlone ? deaths + 1 : deaths;
