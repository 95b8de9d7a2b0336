import { computed, signal } from '@preact/signals';
import type { Key } from '../service/client';
import { client, session } from './session';

/** The key that is signed in; undefined until the service has said what it may do. */
export const currentKey = signal<Key | undefined>();

/** Whether it may operate the service. */
export const isOperator = computed(() => currentKey.value?.scopes.includes('admin') ?? false);

export async function loadCurrentKey(): Promise<void> {
  const mine = session.value;
  const found = await client().keys.current();
  // Another key may have been signed in meanwhile.
  if (session.value === mine) currentKey.value = found;
}
