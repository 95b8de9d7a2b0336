import { buffer } from 'node:stream/consumers';
import type { ImageStorage } from '@app/storage';

/** Keys of everything, or of everything under a prefix, sorted. */
export async function keysIn(storage: ImageStorage, prefix?: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of storage.list(prefix)) keys.push(key);
  return keys.sort();
}

/** A whole object. @throws if it does not exist */
export async function bytesOf(storage: ImageStorage, key: string): Promise<Buffer> {
  const object = await storage.read(key);
  if (!object) throw new Error(`There is no ${key} in the storage.`);
  return buffer(object.stream);
}
