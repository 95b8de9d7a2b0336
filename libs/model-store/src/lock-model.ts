import { join } from 'node:path';
import { FileLock, LockContendedError, LockHeldError, makeFolder } from '@app/process';
import { explainDiskErrors, ModelStoreError } from './model-store-error';

/**
 * Runs `work` while no other process may change this model, on any machine that shares the models folder.
 * @param signal breaks the work off; the signal that `work` gets also aborts when the lock is lost.
 * @throws ModelStoreError `ModelLocked` naming the process that holds it, or `Aborted`
 */
export async function withModelLock(
  modelsDir: string,
  name: string,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  await explainDiskErrors((async () => makeFolder(modelsDir))());
  const stop = new AbortController();
  const follow = (): void => stop.abort(new ModelStoreError('Aborted', 'It was broken off; what has arrived is kept.'));
  if (signal?.aborted) follow();
  signal?.addEventListener('abort', follow, { once: true });
  const lost = new ModelStoreError('ModelLocked', `Another process has taken over the changing of ${name}.`);
  const lock = await lockModel(modelsDir, name, () => stop.abort(lost));
  try {
    await work(stop.signal);
  } catch (error) {
    throw stop.signal.aborted && !(error instanceof ModelStoreError) ? stop.signal.reason : error;
  } finally {
    signal?.removeEventListener('abort', follow);
    lock.release();
  }
}

/** @param onLost called when another process took the lock over. */
async function lockModel(modelsDir: string, name: string, onLost: () => void): Promise<FileLock> {
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
