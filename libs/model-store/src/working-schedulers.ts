import type { InstalledModel } from './model-store';
import { schedulerNames } from '@app/diffusion/files';

/**
 * What a request may name in `scheduler` for a model, as the end of a sentence: all, or a list of those that can draw.
 */
export function workingSchedulers({ schedulerProblems: { named } }: Pick<InstalledModel, 'schedulerProblems'>): string {
  const working = schedulerNames.filter((name) => named[name] === undefined);
  if (working.length === schedulerNames.length) return `any scheduler, such as ${working[0]}`;
  return working.length === 1 ? working[0] : `${working.slice(0, -1).join(', ')} or ${working.at(-1)}`;
}
