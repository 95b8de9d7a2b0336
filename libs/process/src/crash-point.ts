/** Points between two steps of a job at which a process can be made to crash. */
export const crashPoints = [
  'after-insert',
  'after-claim',
  'after-file-write',
  'before-commit',
  'after-commit',
  'after-webhook-send',
] as const;
type CrashPoint = (typeof crashPoints)[number];

interface Armed {
  point: CrashPoint;
  /** Remaining passes; the process dies in the last one. */
  passes: number;
}

/**
 * Reads `<point>` or `<point>:<n>`, for a crash in the n-th pass.
 * @returns undefined for anything else.
 */
export function parseCrashPoint(text: string): Armed | undefined {
  const [, name, passes = '1'] = /^([a-z-]+)(?::([1-9]\d{0,5}))?$/.exec(text) ?? [];
  const point = crashPoints.find((known) => known === name);
  return point && { point, passes: Number(passes) };
}

const armed = parseCrashPoint(process.env.DARKROOM_CRASH_AT ?? '');

/** For tests of recovery: ends this process as `kill -9` would, if `DARKROOM_CRASH_AT` names this point. */
export function crashPoint(name: CrashPoint): void {
  if (armed?.point === name && --armed.passes === 0) process.kill(process.pid, 'SIGKILL');
}
