import type { ApiKeyScope } from '@app/domain';
import { apiKeyScopes, graceEnd, keyBounds, limits } from '@app/domain';
import { InvalidArgumentError } from 'commander';

/** The name of a key. */
export function readName(text: string): string {
  const name = text.trim();
  if (name && name.length <= limits.nameLength) return name;
  throw new InvalidArgumentError(`It must have 1 to ${limits.nameLength} characters.`);
}

/** Comma-separated scopes. */
export function readScopes(text: string): ApiKeyScope[] {
  const words = text.split(',').map((word) => word.trim());
  const scopes = apiKeyScopes.filter((scope) => words.includes(scope));
  if (scopes.length === words.length) return scopes;
  throw new InvalidArgumentError(`It must be one or more of ${apiKeyScopes.join(', ')}, with commas.`);
}

/** A count, or `default`. */
export function readCount(text: string): number | 'default' {
  if (text === 'default') return text;
  const count = Number(text);
  if (/^\d+$/.test(text) && count <= keyBounds.maxCount) return count;
  throw new InvalidArgumentError(`It must be an integer from 0 to ${keyBounds.maxCount}, or "default".`);
}

/** A number of days, or `keep`. */
export function readDays(text: string): number | 'keep' {
  if (text === 'keep') return text;
  const days = Number(text);
  if (/^\d+$/.test(text) && days >= 1 && days <= keyBounds.maxRetentionDays) return days;
  throw new InvalidArgumentError(`It must be an integer from 1 to ${keyBounds.maxRetentionDays}, or "keep".`);
}

/** The end of a grace period given in hours. */
export function readGrace(text: string): Date {
  const hours = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && hours <= keyBounds.graceHours.max) return graceEnd(hours);
  throw new InvalidArgumentError(`It must be a number of hours from 0 to ${keyBounds.graceHours.max}.`);
}
