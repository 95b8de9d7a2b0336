/** A task that cannot be drawn however often it is tried; the message is one plain sentence for its owner. */
export class TaskRefusedError extends Error {
  override readonly name = 'TaskRefusedError';
}
