export const imageTaskStatuses = ['queued', 'processing', 'succeeded', 'failed', 'canceled'] as const;
export type ImageTaskStatus = (typeof imageTaskStatuses)[number];

export const terminatedStatuses = ['succeeded', 'failed', 'canceled'] as const;
export type TerminatedStatus = (typeof terminatedStatuses)[number];

/** Whether nothing more will happen to a task of this status. */
export function isTerminated(status: ImageTaskStatus): status is TerminatedStatus {
  return (terminatedStatuses as readonly string[]).includes(status);
}
