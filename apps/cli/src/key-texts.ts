import type { ApiKey } from '@app/domain';

/** The limits of a key as lines of text. */
export function limitLines(key: ApiKey): string[] {
  const count = (value: number | null): string => (value === null ? 'default' : value === 0 ? 'no limit' : `${value}`);
  return [
    `requests/minute ${count(key.rateLimitPerMinute)}`,
    `queued          ${count(key.maxQueued)}`,
    `concurrent      ${count(key.maxConcurrent)}`,
    `storage         ${key.maxStorageMb ? `${key.maxStorageMb} MB` : count(key.maxStorageMb)}`,
    `kept for        ${key.retentionDays === null ? 'ever' : key.retentionDays === 1 ? '1 day' : `${key.retentionDays} days`}`,
  ];
}

/** How many tasks were canceled. */
export const canceledText = (count: number): string =>
  count === 1 ? '1 Generation or Prompt was canceled.' : `${count} Generations and Prompts were canceled.`;

/** A time in UTC, to the second. */
export const formatTime = (date: Date | null): string =>
  date ? date.toISOString().slice(0, 19).replace('T', ' ') : '-';
