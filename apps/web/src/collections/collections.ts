import type { Collection } from '../service/client';
import { client, forThisSession, sessionSignal } from '../session/session';

export const ownCollections = sessionSignal<readonly Collection[]>(() => []);
export const publicCollections = sessionSignal<readonly Collection[]>(() => []);
export const areCollectionsLoaded = sessionSignal(() => false);

export function loadCollections(): Promise<void> {
  const { collections } = client();
  return forThisSession(Promise.all([collections.list(), collections.list({ scope: 'public' })]), ([own, ofAll]) => {
    ownCollections.value = own;
    publicCollections.value = ofAll;
    areCollectionsLoaded.value = true;
  });
}

export const isPublic = (id: string): boolean => publicCollections.value.some((collection) => collection.id === id);

export const collectionOf = (id: string): Collection | undefined =>
  [...ownCollections.value, ...publicCollections.value].find((collection) => collection.id === id);
