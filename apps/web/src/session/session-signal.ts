import type { Signal } from '@preact/signals';
import { effect, signal } from '@preact/signals';
import { session } from './session';

/** Something that belongs to the caller who is signed in: it begins anew when another one is, or none. */
export function sessionSignal<T>(initial: () => T): Signal<T> {
  const held = signal(initial());
  let owner = session.peek();
  effect(() => {
    if (session.value === owner) return;
    owner = session.value;
    held.value = initial();
  });
  return held;
}

/**
 * Keeps what was read for the caller who asked for it: an answer that comes when another one is signed in is dropped.
 */
export async function forThisSession<T>(reading: Promise<T>, keep: (value: T) => void): Promise<void> {
  const mine = session.peek();
  const value = await reading;
  if (session.peek() === mine) keep(value);
}
