import { sep } from 'node:path';
import { ModelFolderError } from '@app/diffusion/files';
import { isDiskFull } from '@app/process';
import { statfs } from 'node:fs/promises';

/** Faults, for code that reacts to them; the message is for a person: one line, or one for each fault of a model. */
type ModelStoreErrorCode =
  | 'InvalidModelName'
  | 'InvalidSource'
  | 'InvalidDefaults'
  | 'InvalidModel'
  | 'ModelNotInstalled'
  | 'ModelExists'
  | 'ModelLocked'
  | 'HubRefused'
  | 'HubUnreachable'
  | 'CorruptFile'
  | 'NoSpace'
  | 'NotWritable'
  | 'Aborted';

/** A failure of the model store that its caller can act on. */
export class ModelStoreError extends Error {
  constructor(
    readonly code: ModelStoreErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'ModelStoreError';
  }
}

/**
 * The result of `work`.
 * @throws ModelStoreError `InvalidModel`, with paths inside the folder, for what the diffusion library refuses
 */
export async function explainRefusal<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ModelFolderError)) throw error;
    throw new ModelStoreError(
      'InvalidModel',
      folder ? error.message.replaceAll(`${folder}${sep}`, '') : error.message,
      { cause: error },
    );
  }
}

/** A fault behind the words that introduce it; several below them, a line each. */
export function withFaults(introduction: string, faults: string): string {
  return faults.includes('\n') ? `${introduction}\n  ${faults.replaceAll('\n', '\n  ')}` : `${introduction} ${faults}`;
}

/** The `code` of a system error (`ENOENT`, ...), or undefined for any other value. */
export function systemCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

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
    if (isDiskFull(error))
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
