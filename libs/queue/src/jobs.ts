/** The queues of the service and what their jobs carry: an id, for the row is the truth. */
export interface JobData {
  /** A ticket to draw, consumed by the inference processes: whoever takes it draws the task that is due, seldom the one it names. */
  images: { taskId: string };
  /** Settles the task of a sandbox key; consumed by the api processes. */
  sandbox: { taskId: string };
  /** Makes one try of a webhook delivery; consumed by the api processes. */
  webhooks: {
    deliveryId: string;
    /** A person asked for this very try. */
    asked?: boolean;
  };
}

export type QueueName = keyof JobData;

/** Names under which the queues stand in the back end. */
export const queueNames = { images: 'images', sandbox: 'sandbox', webhooks: 'webhooks' } as const satisfies {
  [Q in QueueName]: Q;
};

/** A job to add. Its id never repeats: a finished job of the same id would swallow it. */
export interface NewJob<Q extends QueueName> {
  id: string;
  data: JobData[Q];
  /** Wait before the first try, in milliseconds. */
  delayMs?: number;
}

/** States of a job that is still to be done. */
export const openStates = ['waiting', 'active', 'delayed', 'prioritized'] as const;

/** Whether a job in this state is still to be done, so that its row needs no other. */
export function isOpen(state: string): boolean {
  return openStates.some((open) => open === state);
}

/** Id of the n-th job made for a row. No colon: the back end keeps it for itself. */
export function jobIdOf(rowId: string, enqueued: number): string {
  return `${rowId}-${enqueued}`;
}
