const units = ['kB', 'MB', 'GB', 'TB'];
const step = 1000;
const [minute, hour, day] = [60, 3_600, 86_400];

/** Bytes in the largest unit of which there is one. */
export function sizeOf(bytes: number): string {
  let value = bytes / step;
  let unit = 0;
  while (value >= step && unit < units.length - 1) {
    value /= step;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  // A small file is never shown as 0 kB.
  return `${(unit === 0 ? Math.ceil(value) : value).toFixed(digits)} ${units[unit]}`;
}

/** A length of time, in its largest unit. */
export function spanOf(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < minute) return `${seconds} s`;
  if (seconds < hour) return `${Math.floor(seconds / minute)} min`;
  if (seconds < day) return `${Math.floor(seconds / hour)} h`;
  const days = Math.floor(seconds / day);
  return days === 1 ? '1 day' : `${days} days`;
}

/** Rounded, so that a countdown does not flicker. */
export function durationOf(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 5000) * 5;
  if (seconds < 2 * minute) return `${seconds} s`;
  return spanOf(Math.ceil(seconds / minute) * minute * 1000);
}

/** How long ago a moment was. */
export const spanSince = (moment: string): string => spanOf(Date.now() - Date.parse(moment));

export const picturesText = (count: number): string => (count === 1 ? '1 picture' : `${count} pictures`);
