import { DarkroomError } from './errors.ts';
import { unreachable } from './network-errors.ts';
import type { WithResponse } from './reply.ts';
import { Reply } from './reply.ts';
import { backOffMs, sleep } from './sleep.ts';
import type { Problem } from './types.ts';

/** How to connect to a service. */
export interface ClientOptions {
  /** Such as `http://localhost:3000`. */
  baseUrl: string;
  apiKey: string;
  /** Time limit of one answer; 30 s by default. A stream or a picture must begin by then. */
  requestTimeoutMs?: number;
  /** How often a request is retried after no answer, 429 or 503; 4 by default. */
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
  headers?: Readonly<Record<string, string>>;
}

interface Attempt<T> {
  method: Method;
  path: string;
  message: Message;
  headers: Readonly<Record<string, string>>;
  /** Reads the body of a success; without it the body is left to the caller. */
  read?: (response: Response) => Promise<T>;
  /** Whether the time limit is one of the headers only. */
  isLong?: boolean;
}

/** The service was too busy or restarting, and did nothing. */
const retryableStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** While the first attempt of a POST is still running, its repeat polls this long, whatever `retries` says: the answer will come. */
const inProgressTimeoutMs = 60_000;
const inProgressPollMs = 1_000;

/** Sends requests, and repeats them when that is safe. */
export class Connection {
  private readonly baseUrl: string;
  private readonly requestTimeoutMs: number;

  /** @throws TypeError if the address or the key cannot be one. */
  constructor(private readonly options: ClientOptions) {
    this.baseUrl = options.baseUrl.replace(/(?<!\/)\/+$/, '');
    this.requestTimeoutMs = options.requestTimeoutMs ?? 30_000;
    if (!/^https?:\/\/./.test(this.baseUrl) || !URL.canParse(this.baseUrl))
      throw new TypeError(`baseUrl must be an address such as http://localhost:3000, got "${options.baseUrl}".`);
    if (!/^[!-~]*$/.test(options.apiKey.trim()))
      throw new TypeError('apiKey has a character that no key has, such as a space or a line break.');
  }

  /** Sends a request with an answer in JSON. It throws DarkroomError, or the reason of an aborted signal. */
  send<T>(method: Method, path: string, message: Message = {}): Reply<T> {
    const headers = this.headersOf(method, message);
    return new Reply(this.exchange({ method, path, message, headers, read: (response) => this.readJson<T>(response) }));
  }

  /** Opens a stream. */
  open(path: string, message: Message): Promise<WithResponse<undefined>> {
    const headers = { ...this.headersOf('GET', message), ...message.headers };
    return this.exchange<undefined>({ method: 'GET', path, message, headers, isLong: true });
  }

  /** Reads a file that needs no key; without headers, a browser asks no other origin for leave. */
  download(path: string, message: Message): Reply<Uint8Array<ArrayBuffer>> {
    const read = async (response: Response) => new Uint8Array(await response.arrayBuffer());
    return new Reply(this.exchange({ method: 'GET', path, message, headers: {}, read, isLong: true }));
  }

  /** The error of a request without an answer. */
  noAnswer(error: unknown): DarkroomError {
    return unreachable(this.baseUrl, error as Error, this.requestTimeoutMs);
  }

  private async exchange<T>(attempt: Attempt<T>): Promise<WithResponse<T>> {
    const { method, message } = attempt;
    const { retries = 4 } = this.options;
    let runningUntil: number | undefined;
    for (let made = 0; ;) {
      const outcome = await this.attempt(attempt);
      if ('data' in outcome) return outcome;
      if (await isStillRunning(method, outcome)) {
        runningUntil ??= Date.now() + inProgressTimeoutMs;
        const leftMs = runningUntil - Date.now();
        if (leftMs > 0) {
          await sleep(Math.min(leftMs, retryAfterMs(outcome) || inProgressPollMs), message.signal);
          continue;
        }
      }
      const last = made >= retries || !mayRepeat(method, outcome);
      if (last) throw outcome instanceof Response ? await this.refusal(outcome) : this.noAnswer(outcome);
      if (outcome instanceof Response) outcome.body?.cancel().catch(() => undefined);
      await sleep(Math.max(backOffMs(made++, 300, 8000), retryAfterMs(outcome)), message.signal);
    }
  }

  private headersOf(method: Method, { json, bytes, idempotencyKey }: Message): Record<string, string> {
    return {
      Authorization: `Bearer ${this.options.apiKey.trim()}`,
      ...(json !== undefined && { 'Content-Type': 'application/json' }),
      ...(bytes && { 'Content-Type': 'application/octet-stream' }),
      ...(method === 'POST' && { 'Idempotency-Key': idempotencyKey ?? randomKey() }),
    };
  }

  /** @returns the success, the response that is none, or the reason why there is no response. */
  private async attempt<T>({
    method,
    path,
    message,
    headers,
    read,
    isLong,
  }: Attempt<T>): Promise<WithResponse<T> | Response | Error> {
    const { query = {}, json, bytes, signal } = message;
    const { fetch: send = fetch } = this.options;
    const url = new URL(`${this.baseUrl}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    // An upload has no time limit.
    const limit = new TimeLimit(bytes ? undefined : this.requestTimeoutMs);
    try {
      const response = await send(url, {
        method,
        headers,
        signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
        ...(json !== undefined && { body: JSON.stringify(json) }),
        ...(bytes && { body: bytes as RequestInit['body'] }),
      });
      if (isLong) limit.end();
      return response.ok ? { data: (await read?.(response)) as T, response } : response;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof DarkroomError) throw error;
      return error as Error;
    } finally {
      limit.end();
    }
  }

  private async readJson<T>(response: Response): Promise<T> {
    const type = response.headers.get('content-type') ?? 'nothing';
    if (/^application\/json/.test(type)) return (await response.json()) as T;
    throw new DarkroomError(`${this.baseUrl} answered with ${type} instead of JSON. ${another}`, response.status);
  }

  private async refusal(response: Response): Promise<DarkroomError> {
    const { status } = response;
    const isProblem = /^application\/problem\+json/.test(response.headers.get('content-type') ?? '');
    const problem = isProblem && ((await response.json().catch(() => undefined)) as Problem | undefined);
    if (!problem) return new DarkroomError(`${this.baseUrl} answered ${status} and no reason. ${another}`, status);
    const { detail, code, errors, instance } = problem;
    return new DarkroomError(detail, status, code, errors, instance);
  }
}

const another = 'Another server may have answered than Darkroom.';

/** A signal that aborts after some time, if nobody ends it before. */
class TimeLimit {
  private readonly controller = new AbortController();
  private readonly timer?: ReturnType<typeof setTimeout>;

  constructor(milliseconds: number | undefined) {
    if (milliseconds === undefined) return;
    const reason = () => new DOMException('The time limit is over.', 'TimeoutError');
    this.timer = setTimeout(() => this.controller.abort(reason()), milliseconds);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  end(): void {
    clearTimeout(this.timer);
  }
}

/** Without an answer nobody knows whether a DELETE was executed; the other methods can be repeated, a POST because of its key. */
function mayRepeat(method: Method, outcome: Response | Error): boolean {
  return outcome instanceof Response ? retryableStatuses.has(outcome.status) : method !== 'DELETE';
}

/** An earlier attempt of this POST, whose answer was lost, holds its Idempotency-Key. */
async function isStillRunning(method: Method, outcome: Response | Error): Promise<boolean> {
  if (method !== 'POST' || !(outcome instanceof Response) || outcome.status !== 409) return false;
  const problem: unknown = await outcome
    .clone()
    .json()
    .catch(() => undefined);
  return (problem as Partial<Problem> | undefined)?.code === 'IdempotencyKeyInUse';
}

/** The service sends seconds, a proxy perhaps a date. */
function retryAfterMs(outcome: Response | Error): number {
  const text = (outcome instanceof Response && outcome.headers.get('retry-after')) || '0';
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) ? Math.max(0, milliseconds) : 0;
}

/** A new Idempotency-Key. `randomUUID` is missing from pages without https. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
