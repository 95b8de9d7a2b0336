import { setImmediate } from 'node:timers/promises';

/** Number of streams that are written to before other requests get their turn. */
const slice = 200;

/** Processes many items, and yields the event loop in between. */
export async function inSlices<T>(all: readonly T[], act: (one: T) => void): Promise<void> {
  for (let at = 0; at < all.length; at += slice) {
    if (at > 0) await setImmediate();
    for (const one of all.slice(at, at + slice)) act(one);
  }
}
