import { OutOfMemoryError } from '@app/diffusion';
import type { ModelRegistry } from './model-registry';

/**
 * What follows a failure: `again` is another try as it was, `alone` one with nothing drawn or enlarged beside it, `end`
 * none. Only what ran out of memory is tried again: without the idle models, then alone. A call of the U-Net with more
 * than one picture has half of its rows before that (`RowLimits.halve`).
 * @param hasOthers whether there is anything beside it, so that it may go better alone
 */
export async function nextTry(
  error: unknown,
  registry: Pick<ModelRegistry, 'releaseIdle'>,
  hasOthers: () => boolean,
): Promise<'again' | 'alone' | 'end'> {
  if (!(error instanceof OutOfMemoryError)) return 'end';
  if (await registry.releaseIdle()) return 'again';
  return hasOthers() ? 'alone' : 'end';
}
