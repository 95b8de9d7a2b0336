/**
 * Options of Node for a process that lives for seconds beside other tests: it has no idle core to collect garbage on,
 * and does not collect it while it waits. V8 takes its caches with them, as not with most options.
 */
export const quickCollection = ['--single-threaded-gc', '--no-memory-reducer'];
