import { viewed } from '../gallery/viewer-state';
import { sessionSignal } from '../session/session';
import { say } from '../ui/notices';
import { go } from '../ui/route';

/** The part of the Draw page to scroll to once no dialog covers it. */
export const asked = sessionSignal<'form' | 'stage' | undefined>(() => undefined);

/** Goes to the form or to the picture being drawn, from any page, and says why. */
export function bringUp(part: 'form' | 'stage', text: string): void {
  viewed.value = undefined;
  asked.value = part;
  go('');
  say(text);
}

/** Moves the page to a part of it. On a narrow screen the picture forms below the form. */
export function scrollToPart(part: 'form' | 'stage'): void {
  if (part === 'form') {
    scrollTo({ top: 0 });
    document.getElementById('prompt')?.focus({ preventScroll: true });
    return;
  }
  const stage = document.querySelector('.stage');
  if (!stage) return;
  const { top } = stage.getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2) stage.scrollIntoView({ behavior: 'smooth' });
}
