import { setImmediate } from 'node:timers/promises';

/** So many streams are written to before other requests have their turn. */
const slice = 200;

/** Does something to each of many, and lets others have the event loop in between. */
export async function inSlices<T>(all: readonly T[], act: (one: T) => void): Promise<void> {
  for (let at = 0; at < all.length; at += slice) {
    if (at > 0) await setImmediate();
    for (const one of all.slice(at, at + slice)) act(one);
  }
}
