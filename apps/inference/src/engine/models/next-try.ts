import { OutOfMemoryError } from '@app/diffusion';
import type { ModelRegistry } from './model-registry';

/** What may help a piece of work that ran out of memory. */
interface Remedies {
  /** Has later calls of its kind take half of its rows; only a call of the U-Net has rows. @returns whether it had those of several pictures */
  halveRows?: () => boolean;
  registry: Pick<ModelRegistry, 'releaseIdle'>;
  /** Whether there is anything beside it, so that it may go better alone. */
  hasOthers: () => boolean;
}

/**
 * What follows a failure: `again` is another try as it was, `alone` one with nothing drawn or enlarged beside it, `end`
 * none. Only what ran out of memory is tried again: first with half of its rows, down to a single picture, then without
 * the idle models, then alone. Loading, encoding and enlarging come here as calls and decoding do. Only a step that was
 * left in the middle is no matter of memory alone: `PieceOutcomes` begins it anew, whatever the reason.
 */
export async function nextTry(
  error: unknown,
  { halveRows, registry, hasOthers }: Remedies,
): Promise<'again' | 'alone' | 'end'> {
  if (!(error instanceof OutOfMemoryError)) return 'end';
  if (halveRows?.() || (await registry.releaseIdle())) return 'again';
  return hasOthers() ? 'alone' : 'end';
}
