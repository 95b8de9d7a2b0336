import { signal } from '@preact/signals';
import type { Collection } from '../service/client';
import { client } from '../session/session';

export const ownCollections = signal<readonly Collection[]>([]);
export const publicCollections = signal<readonly Collection[]>([]);
export const areCollectionsLoaded = signal(false);

export async function loadCollections(): Promise<void> {
  const [own, ofAll] = await Promise.all([client().collections.list(), client().collections.list({ scope: 'public' })]);
  ownCollections.value = own;
  publicCollections.value = ofAll;
  areCollectionsLoaded.value = true;
}

export const isPublic = (id: string): boolean => publicCollections.value.some((collection) => collection.id === id);

export const collectionOf = (id: string): Collection | undefined =>
  [...ownCollections.value, ...publicCollections.value].find((collection) => collection.id === id);
