import { texts } from '../texts';

const [minute, hour, day] = [60, 3_600, 86_400];

/** A length of time, in its largest unit. */
export function spanOf(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < minute) return texts.operator.seconds(seconds);
  if (seconds < hour) return texts.operator.minutes(Math.floor(seconds / minute));
  return seconds < day
    ? texts.operator.hours(Math.floor(seconds / hour))
    : texts.operator.days(Math.floor(seconds / day));
}

/** How long ago a moment was. */
export const spanSince = (moment: string): string => spanOf(Date.now() - Date.parse(moment));
