import { DarkroomError } from './errors.ts';
import type { Problem } from './types.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An answer that is no success. */
export interface Refusal {
  status: number;
  headers: Headers;
  /** Undefined if there is none, or if it did not arrive whole. */
  problem: Problem | undefined;
}

/** Whether the service answered. Errors have no status; `instanceof` fails for those of another realm's `fetch`. */
export const isRefusal = (outcome: Refusal | Error): outcome is Refusal => 'status' in outcome;

/** The service was too busy or restarting, and did nothing. */
const undoneStatuses: ReadonlySet<number> = new Set([429, 503]);
/** A proxy got no answer from the service, which may have executed the request. */
const lostStatuses: ReadonlySet<number> = new Set([502, 504]);

/** It is unknown whether a DELETE was executed, so it is not repeated; other methods are, a POST because of its key. */
export function mayRepeat(method: Method, outcome: Refusal | Error): boolean {
  if (isRefusal(outcome) && undoneStatuses.has(outcome.status)) return true;
  return method !== 'DELETE' && (!isRefusal(outcome) || lostStatuses.has(outcome.status));
}

/** An earlier attempt of this POST, whose answer was lost, holds its Idempotency-Key. */
export function isStillRunning(method: Method, outcome: Refusal | Error): boolean {
  if (method !== 'POST' || !isRefusal(outcome) || outcome.status !== 409) return false;
  return outcome.problem?.code === 'IdempotencyKeyInUse';
}

/** The service sends seconds, a proxy perhaps a date. */
export function retryAfterMs(outcome: Refusal | Error): number {
  const text = (isRefusal(outcome) && outcome.headers.get('retry-after')) || '0';
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) ? Math.max(0, milliseconds) : 0;
}

/** By the code that Node and its like give; a browser gives none. */
const causes: Readonly<Record<string, (url: URL) => string>> = {
  ECONNREFUSED: ({ origin }) => `Nothing listens at ${origin}.`,
  ConnectionRefused: ({ origin }) => `Nothing listens at ${origin}.`,
  ENOTFOUND: ({ hostname }) => `There is no host named "${hostname}".`,
  EAI_AGAIN: ({ hostname }) => `The name "${hostname}" cannot be resolved now.`,
  ECONNRESET: ({ origin }) => `${origin} closed the connection before the end of its answer.`,
  UND_ERR_SOCKET: ({ origin }) => `${origin} closed the connection before the end of its answer.`,
  EHOSTUNREACH: ({ hostname }) => `${hostname} is not reachable from this machine.`,
  ENETUNREACH: ({ hostname }) => `${hostname} is not reachable from this machine.`,
  CERT_HAS_EXPIRED: ({ origin }) => `The certificate of ${origin} has expired.`,
  ERR_TLS_CERT_ALTNAME_INVALID: ({ origin, hostname }) => `The certificate of ${origin} is not one of "${hostname}".`,
  DEPTH_ZERO_SELF_SIGNED_CERT: unknownIssuer,
  SELF_SIGNED_CERT_IN_CHAIN: unknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownIssuer,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownIssuer,
};

function unknownIssuer({ origin }: URL): string {
  return `The certificate of ${origin} is from an issuer that this machine does not know.`;
}

/** The error of a request that got no answer. */
export function unreachable(baseUrl: string, error: Error, requestTimeoutMs: number): DarkroomError {
  return new DarkroomError(reasonOf(new URL(baseUrl), error, requestTimeoutMs), 0, undefined, { cause: error });
}

function reasonOf(url: URL, error: Error, requestTimeoutMs: number): string {
  if (error.name === 'TimeoutError') return `${url.origin} did not answer within ${requestTimeoutMs / 1000} s.`;
  const cause = (error.cause ?? error) as Error & { code?: string };
  const known = causes[cause.code ?? ''];
  if (known) return known(url);
  // OpenSSL's own messages have addresses in memory, names of its sources and a line break.
  if (/^(?:ERR_SSL_|EPROTO$)/.test(cause.code ?? ''))
    return `${url.origin} does not speak TLS as https needs it. Perhaps its address begins with http://.`;
  const page = (globalThis as { location?: { origin?: string } }).location?.origin;
  const hint =
    page !== undefined && page !== url.origin
      ? ` Either nothing listens there, or its CORS_ORIGINS does not name ${page}.`
      : '';
  return `${url.origin} did not answer: ${cause.message || error.message}.${hint}`;
}
