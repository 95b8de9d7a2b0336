import { misconfiguredExitCode } from './exit-codes';
import { StartError } from './start-error';

/** Where a server shall listen. */
export interface ListenPlace {
  port: number;
  host: string;
  /** The environment variable with the host; none where nobody chose it. */
  hostVariable?: string;
  /** The environment variable with the port. */
  variable: string;
}

/** What stays so until the setting is changed. A port that is taken, an address or DNS may come right by itself. */
const lastingCodes: readonly (string | undefined)[] = ['EACCES', 'ENOTFOUND'];

/** A server cannot listen: one sentence that names the setting to change. */
export class ListenError extends StartError {
  /** As Node.js names it, such as EADDRINUSE. */
  readonly code: string | undefined;

  constructor(cause: unknown, place: ListenPlace) {
    const { code } = cause as NodeJS.ErrnoException;
    super(explain(code, place), lastingCodes.includes(code) ? misconfiguredExitCode : 1, { cause });
    this.code = code;
  }
}

function explain(code: string | undefined, { port, host, hostVariable, variable }: ListenPlace): string {
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
