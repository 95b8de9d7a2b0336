import { misconfiguredExitCode } from './exit-codes';

/** Why a process cannot start, in a line or a few for its operator. */
export class StartError extends Error {
  /** @param exitCode of this process, which says to whoever restarts it whether that may help */
  constructor(
    message: string,
    readonly exitCode = 1,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** What stays so until the folder or the setting is changed; a full or broken disk may come right by itself. */
const lastingCodes = ['EACCES', 'EEXIST', 'ELOOP', 'ENAMETOOLONG', 'ENOENT', 'ENOTDIR', 'EPERM', 'EROFS'];
/** A file has the name of the folder, or of one that it would be in. */
const fileInTheWayCodes = ['EEXIST', 'ENOTDIR'];

/** The data folder cannot be made or written. */
export class DataFolderError extends StartError {
  constructor(folder: string, cause: unknown) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    const exitCode = lastingCodes.includes(code) ? misconfiguredExitCode : 1;
    const problem = fileInTheWayCodes.includes(code)
      ? 'cannot be made, because a file is in the way'
      : `cannot be written (${code})`;
    super(`The data folder ${folder} ${problem}: set DATA_DIR to another one.`, exitCode, { cause });
  }
}

/**
 * What a process that could not start says, and its exit code. A known cause and an error of the operating
 * system are said plainly; any other, which may have a code too, is a fault of the program, whose stack is needed.
 */
export function failureToStart(error: NodeJS.ErrnoException): { text: string; exitCode: number } {
  const isPlain = error instanceof StartError || error.syscall !== undefined;
  return {
    text: isPlain && error.message ? error.message : (error.stack ?? error.message),
    exitCode: error instanceof StartError ? error.exitCode : 1,
  };
}
