/** Loaded into a process before all else, with --expose-gc: a SIGUSR2 collects its garbage, which else waits for need. */
process.on('SIGUSR2', () => globalThis.gc());
