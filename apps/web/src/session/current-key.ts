import { computed } from '@preact/signals';
import type { Key } from '../service/client';
import { client } from './session';
import { forThisSession, sessionSignal } from './session-signal';

/** The key that is signed in; undefined until the service has said what it may do. */
export const currentKey = sessionSignal<Key | undefined>(() => undefined);

/** Whether it may operate the service. */
export const isOperator = computed(() => currentKey.value?.scopes.includes('admin') ?? false);

export const loadCurrentKey = (): Promise<void> =>
  forThisSession(client().keys.current(), (found) => (currentKey.value = found));
