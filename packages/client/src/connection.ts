import { randomUUID } from 'node:crypto';
import { DarkroomError } from './errors';
import { backOffMs, rest } from './rest';
import type { Problem } from './types';

/** How to reach a service. */
export interface ClientOptions {
  /** Such as `http://localhost:3000`. */
  baseUrl: string;
  apiKey: string;
  /** How long one answer may take; 30 s by default. */
  requestTimeoutMs?: number;
  /** How often a request is tried again that got no answer, or 429 or 503; 4 by default. */
  retries?: number;
  /** In place of the global one. */
  fetch?: typeof fetch;
}

/** Of one request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** Of a POST: a repeat with the same key, after a crash for instance, gets the first reply. One is made where none is given. */
  idempotencyKey?: string;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

interface Message extends RequestOptions {
  query?: Readonly<Record<string, string | number | undefined>>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  bytes?: Uint8Array | Blob;
}

/** The service was too busy or restarting, and did nothing. */
const undone: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** While the first try of a POST still runs, its repeat asks again this long, whatever `retries` says: the answer is on its way. */
const runningPatienceMs = 60_000;
const runningRestMs = 1_000;

/** Sends requests, again where that changes nothing. */
export class Connection {
  private readonly baseUrl: string;

  constructor(private readonly options: ClientOptions) {
    this.baseUrl = options.baseUrl.replace(/(?<!\/)\/+$/, '');
  }

  /** @throws DarkroomError, or the reason of an aborted signal. */
  async send<T>(method: Method, path: string, message: Message = {}): Promise<T> {
    const { retries = 4 } = this.options;
    const headers = this.headersOf(method, message);
    let runningUntil: number | undefined;
    for (let made = 0; ;) {
      const outcome = await this.attempt(method, path, message, headers);
      if (outcome instanceof Response && outcome.ok) return (await outcome.json()) as T;
      if (await isStillRunning(method, outcome)) {
        runningUntil ??= Date.now() + runningPatienceMs;
        const leftMs = runningUntil - Date.now();
        if (leftMs > 0) {
          await rest(Math.min(leftMs, retryAfterMs(outcome) || runningRestMs), message.signal);
          continue;
        }
      }
      const last = made >= retries || !mayRepeat(method, outcome);
      if (last) throw outcome instanceof Response ? await refusal(outcome) : unreachable(this.baseUrl, outcome);
      if (outcome instanceof Response) outcome.body?.cancel().catch(() => undefined);
      await rest(Math.max(backOffMs(made++, 300, 8000), retryAfterMs(outcome)), message.signal);
    }
  }

  private headersOf(method: Method, { json, bytes, idempotencyKey }: Message): Record<string, string> {
    return {
      Authorization: `Bearer ${this.options.apiKey}`,
      ...(json !== undefined && { 'Content-Type': 'application/json' }),
      ...(bytes && { 'Content-Type': 'application/octet-stream' }),
      ...(method === 'POST' && { 'Idempotency-Key': idempotencyKey ?? randomUUID() }),
    };
  }

  /** @returns the answer, or why there is none. */
  private async attempt(
    method: Method,
    path: string,
    { query = {}, json, bytes, signal }: Message,
    headers: Record<string, string>,
  ): Promise<Response | Error> {
    const { requestTimeoutMs = 30_000, fetch: send = fetch } = this.options;
    const url = new URL(`${this.baseUrl}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    // An upload takes as long as it takes.
    const limits = [...(signal ? [signal] : []), ...(bytes ? [] : [AbortSignal.timeout(requestTimeoutMs)])];
    try {
      return await send(url, {
        method,
        headers,
        signal: AbortSignal.any(limits),
        ...(json !== undefined && { body: JSON.stringify(json) }),
        ...(bytes && { body: bytes as RequestInit['body'] }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      return error as Error;
    }
  }
}

/** Without an answer nobody knows whether a DELETE was done; the others can be repeated, a POST by its key. */
function mayRepeat(method: Method, outcome: Response | Error): boolean {
  return outcome instanceof Response ? undone.has(outcome.status) : method !== 'DELETE';
}

/** An earlier try of this POST, whose answer was lost, holds its Idempotency-Key. */
async function isStillRunning(method: Method, outcome: Response | Error): Promise<boolean> {
  if (method !== 'POST' || !(outcome instanceof Response) || outcome.status !== 409) return false;
  const problem: unknown = await outcome
    .clone()
    .json()
    .catch(() => undefined);
  return (problem as Partial<Problem> | undefined)?.code === 'IdempotencyKeyInUse';
}

function retryAfterMs(outcome: Response | Error): number {
  const seconds = outcome instanceof Response ? Number(outcome.headers.get('retry-after')) : 0;
  return Number.isFinite(seconds) ? seconds * 1000 : 0;
}

async function refusal(response: Response): Promise<DarkroomError> {
  const text = await response.text();
  const isProblem = /^application\/problem\+json/.test(response.headers.get('content-type') ?? '');
  if (!isProblem) return new DarkroomError(`The answer was ${response.status}.`, response.status);
  const { detail, code, errors, instance } = JSON.parse(text) as Problem;
  return new DarkroomError(detail, response.status, code, errors, instance);
}

function unreachable(baseUrl: string, cause: Error): DarkroomError {
  return new DarkroomError(`${baseUrl} did not answer: ${cause.message}`, 0, undefined, [], undefined, { cause });
}
