import type { ImageTask } from '@app/domain';

/** `<task id>/<attempt>/…`: pictures. Thumbnails, weights and all else have other keys. */
const pictureKey = /^(?<id>[\w-]{24})\/(?<attempt>\d+)\//;

/** Where the storage has the pictures of one attempt. */
export function attemptFolder({ id, attempt }: Pick<ImageTask, 'id' | 'attempt'>): string {
  return `${id}/${attempt}`;
}

/** The attempt whose picture a storage key names; undefined for other files. */
export function attemptOf(key: string): Pick<ImageTask, 'id' | 'attempt'> | undefined {
  const { id, attempt } = pictureKey.exec(key)?.groups ?? {};
  return id === undefined ? undefined : { id, attempt: Number(attempt) };
}
