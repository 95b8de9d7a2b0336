import type { ModelFault } from './errors';
import { ModelFolderError } from './errors';

/**
 * What each of some steps gives, none of which needs another's result.
 * @throws ModelFolderError with the faults of all that are refused; any other error at once
 */
export async function resultsOf<T extends object>(steps: { [K in keyof T]: () => T[K] | Promise<T[K]> }): Promise<T> {
  const results: Partial<T> = {};
  const faults: ModelFault[] = [];
  for (const name of Object.keys(steps) as (keyof T)[])
    try {
      results[name] = await steps[name]();
    } catch (error) {
      if (!(error instanceof ModelFolderError)) throw error;
      faults.push(error, ...error.others);
    }
  if (faults.length > 0) throw allOf(faults);
  return results as T;
}

/** One error that tells all of some faults, of which there is at least one. */
export function allOf([first, ...others]: readonly ModelFault[]): ModelFolderError {
  return new ModelFolderError(first.file, first.reason, first.cure, others);
}
