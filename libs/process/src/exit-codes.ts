/**
 * Exit code of a process that cannot work with its settings, so that a restart does not help; EX_CONFIG of sysexits.h.
 */
export const misconfiguredExitCode = 78;
