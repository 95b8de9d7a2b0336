/**
 * Ends this process when its parent, which started it with an IPC channel, is gone, `kill -9` included. At once,
 * as after a crash: the database is going away too, and jobs can be taken up again. Does nothing in a process that
 * was started on its own.
 */
export function exitWithParent(): void {
  if (!process.channel) return;
  // A regular exit waits for other threads, and one that draws may never end.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  // The channel alone must not keep the process alive.
  process.channel.unref();
}

/** Tells the parent, if there is an IPC channel, that this process answers at its address. */
export function tellParentOfListening(): void {
  process.send?.('listening');
}

/**
 * The signals that ask a process to end in order. Not those of a fault, such as SIGSEGV in native code: the process
 * must end at once, and with a JavaScript listener it never would.
 */
export const endSignals: ('SIGINT' | 'SIGTERM' | 'SIGHUP')[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
