/** Preloaded into a process, with --expose-gc: a SIGUSR2 collects its garbage at once. */
process.on('SIGUSR2', () => globalThis.gc());
