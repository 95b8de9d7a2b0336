/** A task that can never be drawn; the message is one plain sentence for its owner. */
export class TaskRefusedError extends Error {
  override readonly name = 'TaskRefusedError';
}
