import { randomUUID } from 'node:crypto';
import { DarkroomError } from './errors';
import { backOffMs, sleep } from './sleep';
import type { Problem } from './types';

/** How to connect to a service. */
export interface ClientOptions {
  /** Such as `http://localhost:3000`. */
  baseUrl: string;
  apiKey: string;
  /** Time limit of one response; 30 s by default. */
  requestTimeoutMs?: number;
  /** How often a request is retried after no response, 429 or 503; 4 by default. */
  retries?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

/** Options of one request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** For a POST: a repeat with the same key, for example after a crash, gets the first reply. Generated if absent. */
  idempotencyKey?: string;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface Message extends RequestOptions {
  query?: Readonly<Record<string, string | number | undefined>>;
  /** A body that is sent as JSON. */
  json?: unknown;
  /** A body that is sent as it is. */
  bytes?: Uint8Array | Blob;
}

/** The service was too busy or restarting, and did nothing. */
const retryableStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** While the first attempt of a POST is still running, its repeat polls this long, whatever `retries` says: the answer will come. */
const inProgressTimeoutMs = 60_000;
const inProgressPollMs = 1_000;

/** Sends requests, and repeats them when that is safe. */
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
        runningUntil ??= Date.now() + inProgressTimeoutMs;
        const leftMs = runningUntil - Date.now();
        if (leftMs > 0) {
          await sleep(Math.min(leftMs, retryAfterMs(outcome) || inProgressPollMs), message.signal);
          continue;
        }
      }
      const last = made >= retries || !mayRepeat(method, outcome);
      if (last) throw outcome instanceof Response ? await refusal(outcome) : unreachable(this.baseUrl, outcome);
      if (outcome instanceof Response) outcome.body?.cancel().catch(() => undefined);
      await sleep(Math.max(backOffMs(made++, 300, 8000), retryAfterMs(outcome)), message.signal);
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

  /** @returns the response, or the reason why there is none. */
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
    // An upload has no time limit.
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

/** Without a response nobody knows whether a DELETE was executed; the other methods can be repeated, a POST because of its key. */
function mayRepeat(method: Method, outcome: Response | Error): boolean {
  return outcome instanceof Response ? retryableStatuses.has(outcome.status) : method !== 'DELETE';
}

/** An earlier attempt of this POST, whose response was lost, holds its Idempotency-Key. */
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
