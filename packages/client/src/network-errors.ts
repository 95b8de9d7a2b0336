import { DarkroomError } from './errors.ts';

/** What went wrong on the way, by the code that Node and its like give; a browser gives none. */
const causes: Readonly<Record<string, (url: URL) => string>> = {
  ECONNREFUSED: ({ origin }) => `Nothing listens at ${origin}.`,
  ConnectionRefused: ({ origin }) => `Nothing listens at ${origin}.`,
  ENOTFOUND: ({ hostname }) => `There is no host named "${hostname}".`,
  EAI_AGAIN: ({ hostname }) => `The name "${hostname}" cannot be resolved now.`,
  ECONNRESET: ({ origin }) => `${origin} closed the connection before the end of its answer.`,
  UND_ERR_SOCKET: ({ origin }) => `${origin} closed the connection before the end of its answer.`,
  EHOSTUNREACH: ({ hostname }) => `${hostname} is not reachable from this machine.`,
  ENETUNREACH: ({ hostname }) => `${hostname} is not reachable from this machine.`,
};

/** The error of a request that got no answer. */
export function unreachable(baseUrl: string, error: Error, requestTimeoutMs: number): DarkroomError {
  return new DarkroomError(reasonOf(new URL(baseUrl), error, requestTimeoutMs), 0, undefined, { cause: error });
}

function reasonOf(url: URL, error: Error, requestTimeoutMs: number): string {
  if (error.name === 'TimeoutError') return `${url.origin} did not answer within ${requestTimeoutMs / 1000} s.`;
  const cause = (error.cause ?? error) as Error & { code?: string };
  const known = causes[cause.code ?? ''];
  if (known) return known(url);
  const page = (globalThis as { location?: { origin?: string } }).location?.origin;
  const hint =
    page !== undefined && page !== url.origin
      ? ` Either nothing listens there, or its CORS_ORIGINS does not name ${page}.`
      : '';
  return `${url.origin} did not answer: ${cause.message || error.message}.${hint}`;
}
