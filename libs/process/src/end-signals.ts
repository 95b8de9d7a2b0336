/**
 * The signals that ask a process to end in order. Not those of a fault, such as SIGSEGV in native code: the process
 * must end at once, and with a JavaScript listener it never would.
 */
export const endSignals: ('SIGINT' | 'SIGTERM' | 'SIGHUP')[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
