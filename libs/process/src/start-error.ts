/**
 * Exit code of a process that cannot work with its settings, so that a restart does not help; EX_CONFIG of sysexits.h.
 */
export const misconfiguredExitCode = 78;

/** Why a process cannot start, in a line or a few for its operator. */
export class StartError extends Error {
  /** @param exitCode tells whoever restarts the process whether that may help */
  constructor(
    message: string,
    readonly exitCode = 1,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Causes that stay until the folder or the setting is changed; a full or broken disk may come right by itself. */
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
 * Last words of a process that could not start, and its exit code. Known causes and errors of the operating system are
 * said plainly; any other, which may have a code too, is a fault of the program, whose stack is needed.
 */
export function failureToStart(error: NodeJS.ErrnoException): { text: string; exitCode: number } {
  const isPlain = error instanceof StartError || error.syscall !== undefined;
  return {
    text: isPlain && error.message ? error.message : (error.stack ?? error.message),
    exitCode: error instanceof StartError ? error.exitCode : 1,
  };
}

/** Where a server shall listen. */
export interface ListenPlace {
  port: number;
  host: string;
  /** The environment variable with the host; none where nobody chose it. */
  hostVariable?: string;
  /** The environment variable with the port. */
  variable: string;
}

/** Causes that stay until the setting is changed. A port that is taken, an address or DNS may come right by itself. */
const lastingListenCodes: readonly (string | undefined)[] = ['EACCES', 'ENOTFOUND'];

/** A server cannot listen: one sentence that names the setting to change. */
export class ListenError extends StartError {
  /** As Node.js names it, such as EADDRINUSE. */
  readonly code: string | undefined;

  constructor(cause: unknown, place: ListenPlace) {
    const { code } = cause as NodeJS.ErrnoException;
    super(explainListening(code, place), lastingListenCodes.includes(code) ? misconfiguredExitCode : 1, { cause });
    this.code = code;
  }
}

function explainListening(code: string | undefined, { port, host, hostVariable, variable }: ListenPlace): string {
  switch (code) {
    case 'EADDRINUSE':
      return `${variable} is ${port}, and another program uses that port of ${host}: end that, or set ${variable} to another port.`;
    case 'EACCES':
      return `${variable} is ${port}, and this user may not listen on that port: set ${variable} to one above 1023.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return hostVariable === undefined
        ? `${variable} is ${port}, to be listened on at ${host}, which is no address of this machine.`
        : `${hostVariable} is "${host}", which is no address of this machine.`;
    default:
      return `${variable} is ${port}, and that port of ${host} cannot be listened on (${code}).`;
  }
}
