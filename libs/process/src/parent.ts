/**
 * Ends this process when the one that started it with an IPC channel is gone, `kill -9` included.
 * At once, as after a crash: the database is going too, and jobs are made to be taken up again.
 * Does nothing in a process that was started on its own.
 */
export function exitWithParent(): void {
  if (!process.channel) return;
  process.once('disconnect', () => process.exit(1));
  // The channel alone is no reason to stay.
  process.channel.unref();
}
