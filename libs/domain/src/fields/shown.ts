/** Characters of a wrong value that a message repeats. */
const shownLength = 40;

/** A wrong value, as a message names it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value !== 'string') return JSON.stringify(value);
  return value.length > shownLength ? `${JSON.stringify(value.slice(0, shownLength))}…` : JSON.stringify(value);
}
