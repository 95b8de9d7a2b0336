export const taskStatuses = ['queued', 'processing', 'succeeded', 'failed', 'canceled'] as const;
export type TaskStatus = (typeof taskStatuses)[number];

export const terminatedStatuses = ['succeeded', 'failed', 'canceled'] as const;
export type TerminatedStatus = (typeof terminatedStatuses)[number];

/** Whether nothing more will happen to a task of this status. */
export function isTerminated(status: TaskStatus): status is TerminatedStatus {
  return (terminatedStatuses as readonly string[]).includes(status);
}
