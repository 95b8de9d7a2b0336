import { join } from 'node:path';
import { FileLock, LockContendedError, LockHeldError } from '@app/process';
import { explainDiskErrors } from './disk-space';
import { ModelStoreError } from './model-store-error';

/**
 * Ensures that one process at a time changes a model, across all machines that share the models folder.
 * @param onLost called when another process took the lock over.
 * @throws ModelStoreError `ModelLocked` naming the process that holds it.
 */
export async function lockModel(modelsDir: string, name: string, onLost: () => void): Promise<FileLock> {
  try {
    return FileLock.acquire(join(modelsDir, `.${name}.lock`), { onLost });
  } catch (error) {
    const changed = `${name} is being changed by`;
    if (error instanceof LockHeldError) {
      const { pid, host, since } = error.holder;
      const message = `${changed} process ${pid} on ${host} since ${since}; wait for it to end.`;
      throw new ModelStoreError('ModelLocked', message);
    }
    if (error instanceof LockContendedError)
      throw new ModelStoreError('ModelLocked', `${changed} several processes at once; try again.`);
    return explainDiskErrors(Promise.reject(error as Error));
  }
}
