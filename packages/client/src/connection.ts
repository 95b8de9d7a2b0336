import { DarkroomError } from './errors.ts';
import {
  isRefusal,
  isStillRunning,
  mayRepeat,
  type Method,
  type Refusal,
  retryAfterMs,
  unreachable,
} from './refusals.ts';
import { Reply, type WithResponse } from './reply.ts';
import { backOffMs, sleep, TimeLimit } from './timing.ts';
import type { Problem } from './types.ts';

/** How to connect to a service. */
export interface ClientOptions {
  /** Such as `http://localhost:3000`. A `/v1` at its end is left off: the client adds it. */
  baseUrl: string;
  apiKey: string;
  /** Time limit of one answer; 30 s by default. A stream or a picture must begin by then. */
  requestTimeoutMs?: number;
  /**
   * How often a request is retried after no answer, 429, 502, 503 or 504, a DELETE only after 429
   * and 503; 4 by default.
   */
  retries?: number;
  /** An error whose `retryAfter` is longer is thrown at once; 60 s by default. */
  maxWaitMs?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

/** Options of one request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** For a POST: a repeat with the same key, for example after a crash, gets the first reply. Generated if absent. */
  idempotencyKey?: string;
}

interface Message extends RequestOptions {
  query?: Readonly<Record<string, string | number | undefined>>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as they are. */
  bytes?: Uint8Array | Blob;
  headers?: Readonly<Record<string, string>>;
}

interface Attempt<T> {
  method: Method;
  path: string;
  message: Message;
  headers: Readonly<Record<string, string>>;
  /** Reads the body of a success, or leaves it to the caller. */
  read: (response: Response) => Promise<T>;
  /** Whether the time limit ends with the headers. */
  isLong?: boolean;
}

/** While the first attempt of a POST runs, its repeat polls this long, whatever `retries` says: an answer will come. */
const inProgressTimeoutMs = 60_000;
const inProgressPollMs = 1_000;

/** Repeats requests when that is safe. */
export class Connection {
  private readonly baseUrl: string;
  private readonly requestTimeoutMs: number;

  /** @throws TypeError if the address or the key cannot be one. */
  constructor(private readonly options: ClientOptions) {
    this.baseUrl = options.baseUrl.replace(/(?<!\/)\/+$/, '').replace(/(?<!\/)\/v1$/, '');
    this.requestTimeoutMs = options.requestTimeoutMs ?? 30_000;
    if (!/^https?:\/\/./.test(this.baseUrl) || !URL.canParse(this.baseUrl))
      throw new TypeError(`baseUrl must be an address such as http://localhost:3000, got "${options.baseUrl}".`);
    const apiKey = options.apiKey.trim();
    if (apiKey === '') throw new TypeError('apiKey is empty.');
    if (!/^[!-~]+$/.test(apiKey))
      throw new TypeError('apiKey has a character that no key has, such as a space or a line break.');
  }

  /** @throws DarkroomError, or the reason of an aborted signal */
  send<T>(method: Method, path: string, message: Message = {}): Reply<T> {
    const headers = this.headersOf(method, message);
    const read = async (response: Response) => {
      this.expectType(response, 'application/json', 'JSON');
      return (await response.json()) as T;
    };
    return new Reply(this.exchange({ method, path, message, headers, read }));
  }

  /** A 204 says that no events will come. */
  open(path: string, message: Message): Promise<WithResponse<undefined>> {
    const headers = { ...this.headersOf('GET', message), ...message.headers };
    const read = (response: Response) => {
      if (response.status !== 204) this.expectType(response, 'text/event-stream', 'events');
      return Promise.resolve(undefined);
    };
    return this.exchange<undefined>({ method: 'GET', path, message, headers, read, isLong: true });
  }

  file(path: string, message: Message = {}): Reply<Uint8Array<ArrayBuffer>> {
    const read = async (response: Response) => new Uint8Array(await response.arrayBuffer());
    const headers = this.headersOf('GET', message);
    return new Reply(this.exchange({ method: 'GET', path, message, headers, read, isLong: true }));
  }

  /** Without a key: a browser makes no preflight request to another origin if there are no headers. */
  download(path: string, message: Message): Reply<Uint8Array<ArrayBuffer>> {
    const read = async (response: Response) => new Uint8Array(await response.arrayBuffer());
    const reads = this.exchange({ method: 'GET', path, message, headers: {}, read, isLong: true });
    return new Reply(
      reads.catch((error: unknown) => {
        throw error instanceof DarkroomError && error.status === 404 ? this.notHere(path, error) : error;
      }),
    );
  }

  /** Names the address that was asked: the one in the picture's URL may differ. */
  private notHere(path: string, error: DarkroomError): DarkroomError {
    const { message, status, code, errors, requestId } = error;
    const asked = `download() asks ${this.baseUrl} for ${path}, whatever address the picture's URL has.`;
    return new DarkroomError(`${message} ${asked}`, status, code, { errors, requestId, cause: error });
  }

  noAnswer(error: unknown): DarkroomError {
    return unreachable(this.baseUrl, error as Error, this.requestTimeoutMs);
  }

  private async exchange<T>(attempt: Attempt<T>): Promise<WithResponse<T>> {
    const { method, message } = attempt;
    const { retries = 4, maxWaitMs = 60_000 } = this.options;
    let runningUntil: number | undefined;
    for (let made = 0; ;) {
      const outcome = await this.attempt(attempt);
      if ('data' in outcome) return outcome;
      if (isStillRunning(method, outcome)) {
        runningUntil ??= Date.now() + inProgressTimeoutMs;
        const leftMs = runningUntil - Date.now();
        if (leftMs > 0) {
          await sleep(Math.min(leftMs, retryAfterMs(outcome) || inProgressPollMs), message.signal);
          continue;
        }
      }
      const waitMs = retryAfterMs(outcome);
      if (made >= retries || waitMs > maxWaitMs || !mayRepeat(method, outcome)) throw this.errorOf(outcome);
      await sleep(Math.max(backOffMs(made++, 300, 8000), waitMs), message.signal);
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

  /** @returns the success, the refusal, or the reason why there is no answer */
  private async attempt<T>(attempt: Attempt<T>): Promise<WithResponse<T> | Refusal | Error> {
    const { signal, bytes } = attempt.message;
    const limit = new TimeLimit();
    // An upload has no time limit; its answer does.
    if (!bytes) limit.start(this.requestTimeoutMs);
    try {
      const response = await this.fetch(attempt, limit.or(signal));
      if (bytes) limit.start(this.requestTimeoutMs);
      if (!response.ok) {
        const problem = await problemOf(response);
        signal?.throwIfAborted();
        return { status: response.status, headers: response.headers, problem };
      }
      if (attempt.isLong) limit.end();
      return { data: await attempt.read(response), response };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof DarkroomError) throw error;
      return error as Error;
    } finally {
      limit.end();
    }
  }

  private fetch({ method, path, message, headers }: Attempt<unknown>, signal: AbortSignal): Promise<Response> {
    const { query = {}, json, bytes } = message;
    const { fetch: send = fetch } = this.options;
    const url = new URL(`${this.baseUrl}${path}`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    return send(url, {
      method,
      headers,
      signal,
      ...(json !== undefined && { body: JSON.stringify(json) }),
      ...(bytes && { body: bytes as RequestInit['body'] }),
    });
  }

  /** @throws DarkroomError if an answer is of another type */
  private expectType(response: Response, expected: string, name: string): void {
    const type = response.headers.get('content-type') ?? 'nothing';
    if (type.startsWith(expected)) return;
    discard(response);
    throw new DarkroomError(`${this.baseUrl} answered with ${type} instead of ${name}. ${another}`, response.status);
  }

  private errorOf(outcome: Refusal | Error): DarkroomError {
    if (!isRefusal(outcome)) return this.noAnswer(outcome);
    const { status, headers, problem } = outcome;
    const retryAfter = headers.has('retry-after') ? retryAfterMs(outcome) / 1000 : undefined;
    if (!problem)
      return new DarkroomError(`${this.baseUrl} answered ${status} and no reason. ${another}`, status, undefined, {
        retryAfter,
      });
    const { detail, code, errors, instance } = problem;
    return new DarkroomError(detail, status, code, { errors, requestId: instance, retryAfter });
  }
}

const another = 'Perhaps this is not a Darkroom server.';

/** Undefined if it breaks off or never ends: the status is known anyway. */
async function problemOf(response: Response): Promise<Problem | undefined> {
  if (/^application\/problem\+json/.test(response.headers.get('content-type') ?? ''))
    return (await response.json().catch(() => undefined)) as Problem | undefined;
  discard(response);
}

/** Frees the connection of an answer that nobody reads. */
function discard({ body }: Response): void {
  body?.cancel().catch(() => undefined);
}

/** `randomUUID` is missing from pages without https. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
