const units = ['kB', 'MB', 'GB', 'TB'];
const step = 1000;

/** Bytes in the largest unit of which there is one. */
export function sizeOf(bytes: number): string {
  let value = bytes / step;
  let unit = 0;
  while (value >= step && unit < units.length - 1) {
    value /= step;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  // What is there at all is at least one.
  return `${(unit === 0 ? Math.ceil(value) : value).toFixed(digits)} ${units[unit]}`;
}
