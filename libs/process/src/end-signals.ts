/**
 * What asks a process to end in order. No others: a signal of a fault, such as SIGSEGV in the runtime's native code, has to end
 * the process at once, and with a listener in JavaScript it never would.
 */
export const endSignals: ('SIGINT' | 'SIGTERM' | 'SIGHUP')[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
