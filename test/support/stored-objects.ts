import { buffer } from 'node:stream/consumers';
import type { ImageStorage } from '@app/storage';

/** Keys of what is stored under a prefix, or of everything, sorted. */
export async function keysIn(storage: ImageStorage, prefix?: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of storage.list(prefix)) keys.push(key);
  return keys.sort();
}

/** The whole of an object; throws when there is none. */
export async function bytesOf(storage: ImageStorage, key: string): Promise<Buffer> {
  const object = await storage.read(key);
  if (!object) throw new Error(`There is no ${key} in the storage.`);
  return buffer(object.stream);
}
