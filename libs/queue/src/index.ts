import type { Config } from '@app/config';
import type { JobBackEnd } from './job-back-end';
import { PostgresBackEnd } from './postgres-back-end';
import { RedisBackEnd } from './redis-back-end';

export { changeChannel, keyChannel, progressChannel, stopChannel } from './channels';
export type { StepMessage } from './channels';
export { ClockWatch, databaseNow } from './clock-watch';
export type { ClockWatchOptions } from './clock-watch';
export { claimDueStatement, queuePositions, silenceFactor } from './fair-queue';
export * from './image-task-life-cycle';
export { queueConnection } from './job-back-end';
export type { JobBackEnd, JobPresence, QueueConnection } from './job-back-end';
export * from './jobs';
export { forgetReplies } from './forget-replies';
export { Gathered } from './gathered';
export { LiveWorkers, workerBeatMs } from './live-workers';
export { insertTasks } from './insert-tasks';
export type { NewTask } from './insert-tasks';
export { TaskIntake } from './task-intake';
export { addStored, recountStored } from './storage-use';
export { afterCommit, Transactions } from './transactions';
export type { JobTransaction } from './transactions';

/** Opens the back end that the configuration names. */
export function openJobBackEnd(
  config: Pick<Config, 'queueBackend' | 'redisUrl'>,
  databaseUrl: string,
  onError: (error: Error) => void,
): JobBackEnd {
  return config.queueBackend === 'redis'
    ? new RedisBackEnd(config.redisUrl ?? '', onError)
    : new PostgresBackEnd(databaseUrl, onError);
}
