import { statfs } from 'node:fs/promises';
import { ModelStoreError, systemCode } from './model-store-error';

/** Space that must stay free beside the model, for the manifest and everything else on the disk. */
const reserveBytes = 64 * 2 ** 20;

/** @throws ModelStoreError `NoSpace` when the folder's disk has no room for this many more bytes. */
export async function checkDiskSpace(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bytes + reserveBytes <= bavail * bsize) return;
  throw new ModelStoreError(
    'NoSpace',
    `The model needs ${formatBytes(bytes)} more and the disk of ${folder} has ${formatBytes(bavail * bsize)} free.`,
  );
}

/** Awaits a write and explains a failure of the disk. @throws ModelStoreError `NoSpace` or `NotWritable` */
export async function explainDiskErrors<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new ModelStoreError('NoSpace', 'The disk is full; what has arrived is kept.', { cause: error });
    throw new ModelStoreError('NotWritable', `The models folder cannot be written: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

/** A readable size, in powers of 1000 as on the hub. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
  let unit = 0;
  for (; bytes >= 999.5 && unit < units.length - 1; unit++) bytes /= 1000;
  return `${bytes.toFixed(unit === 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2)} ${units[unit]}`;
}
