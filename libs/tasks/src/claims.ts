import type { Attempt, TaskQueue } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { changeChannel } from './channels';
import { claimStatement, taskForOtherModelsStatement } from './statements/claim';

/** The tasks that a worker wants to draw, or to train, now. */
export interface ClaimFilter {
  /** By default `drawing`. */
  queue?: TaskQueue;
  /** Only tasks of sandbox keys; otherwise only those of all others. */
  sandbox?: boolean;
  /** Owners whose queued tasks are not wanted. */
  except?: readonly string[];
  /** Those that it can draw; undefined: any. */
  models?: readonly string[];
  /** The model that a worker has to have for trainings of another, in whose place it is trained, by that one's name. */
  trainedOn?: Readonly<Record<string, string>>;
  /** Owners who need one of these go first, within bounds. */
  loaded?: readonly string[];
  /** Whether it takes tasks that no worker can draw, to fail them. */
  undrawable?: boolean;
}

/** Tries when other workers claim for the same key at the same moment. */
const claimTries = 5;
const uniqueViolation = '23505';

/** Claims the next task in turn. @returns its id and this claim's attempt; undefined if none is due. */
export async function claimNext(
  manager: EntityManager,
  filter: ClaimFilter,
  maxConcurrent: number,
): Promise<Attempt | undefined> {
  const { queue = 'drawing', sandbox = false, except = [], models, trainedOn = {} } = filter;
  const { undrawable = false, loaded = [] } = filter;
  for (let left = claimTries; ; left--)
    try {
      const parameters = [maxConcurrent, changeChannel, except, models ?? null, undrawable, loaded, trainedOn];
      const [claimed] = await manager.query<Attempt[]>(claimStatement(sandbox, queue), parameters);
      return claimed && { id: claimed.id, attempt: claimed.attempt };
    } catch (error) {
      if ((error as { code?: string }).code !== uniqueViolation || left === 0) throw error;
    }
}

/** Whether something waits that none of these models draws. */
export async function hasTaskForOtherModels(
  manager: EntityManager,
  models: readonly string[],
  queue: TaskQueue = 'drawing',
): Promise<boolean> {
  const [{ waits }] = await manager.query<[{ waits: boolean }]>(taskForOtherModelsStatement(queue), [models]);
  return waits;
}
