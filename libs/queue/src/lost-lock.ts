/**
 * What BullMQ says of a job whose lock this worker no longer has. The job's id is left out, so
 * that such lines are alike.
 */
const sentences = [
  /^could not renew lock/,
  /^Missing (?:lock|key)/,
  /^Lock mismatch/,
  /is not in the \w+ state/,
  /^job stalled more than/,
];

/**
 * What the queue could not do because a worker no longer has a job's lock; undefined for any other error. On a busy
 * machine locks are renewed too late and their jobs go to other workers. Nothing is lost by that: a job only says that
 * there is work, and who does it is decided by rows of the database, which have leases of their own.
 */
export function lostLock({ message }: Error): string | undefined {
  for (const sentence of sentences) {
    const [words] = sentence.exec(message) ?? [];
    if (words !== undefined) return words;
  }
  return undefined;
}

/** Log message for a lost lock. */
export const lockLost = 'a job went to another worker before this one was done; nothing is lost';
