/** The longest time that an answer waits at its caller's wish. */
export const longestWaitSeconds = 60;

/**
 * The seconds of `wait` in a `Prefer` header (RFC 7240), at most `longestWaitSeconds`, which a bare `wait` means too;
 * undefined where it is absent or no number of seconds: a preference that cannot be understood is ignored.
 */
export function preferredWait(header: string | string[] | undefined): number | undefined {
  for (const preference of [header ?? []].flat().join().split(',')) {
    const [name, value = ''] = preference.split(';')[0].split('=');
    if (name.trim().toLowerCase() !== 'wait') continue;
    const seconds = value.trim().replace(/^"(.*)"$/, '$1');
    if (seconds === '') return longestWaitSeconds;
    if (/^\d{1,9}$/.test(seconds) && Number(seconds) > 0) return Math.min(Number(seconds), longestWaitSeconds);
  }
  return undefined;
}
