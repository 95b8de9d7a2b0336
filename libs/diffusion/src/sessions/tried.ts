import { cures, ModelFolderError, OutOfMemoryError, ProviderUnavailableError } from '../errors';
import { isGraphFault } from './graph-fault';

/** A part's first run: what the graph is at fault for is said of its weights. @throws ModelFolderError */
export async function tried<T>(file: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const isOther = error instanceof OutOfMemoryError || error instanceof ProviderUnavailableError;
    if (isOther || error instanceof ModelFolderError || !isGraphFault(error)) throw error;
    const [reason] = (error as Error).message.split('\n');
    throw new ModelFolderError(file, `cannot be run: ${reason.slice(0, 300)}`, cures.installAgain);
  }
}
