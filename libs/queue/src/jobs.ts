/** The queues of the service and the data of their jobs: an id, because the row is the source of truth. */
export interface JobData {
  /**
   * A ticket to draw, for the inference processes. Its worker draws the next task in turn, which is seldom
   * the task with this id.
   */
  images: { taskId: string };
}

export type QueueName = keyof JobData;

/** Names of the queues in the back end. */
export const queueNames = { images: 'images' } as const satisfies {
  [Q in QueueName]: Q;
};

/** A job to add. Its id must never repeat: BullMQ ignores a job whose id a finished job has. */
export interface NewJob<Q extends QueueName> {
  id: string;
  data: JobData[Q];
  /** Wait before the first attempt, in milliseconds. */
  delayMs?: number;
}

/** The job of a row that is younger, or due for less, may still come, because Redis gets it after the commit. */
export const jobGraceMs = 5_000;

/** States of a job that has not ended. */
export const openStates = ['waiting', 'active', 'delayed', 'prioritized'] as const;

/** Whether a job in this state has not ended, so that its row needs no other. */
export function isOpen(state: string): boolean {
  return openStates.some((open) => open === state);
}

/** Id of the n-th job of a row. BullMQ reserves the colon. */
export function jobIdOf(rowId: string, enqueued: number): string {
  return `${rowId}-${enqueued}`;
}
