import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { FairTurns } from '@app/process';
import axios, { isAxiosError } from 'axios';
import { AddressRefusedError, checkedAgents, InformationError, plainRequest } from './checked-agents';
import { DnsLookUps } from './dns-look-ups';
import { readBody, SmallPiecesError } from './read-body';

/** Why a file was not fetched: the rest of a sentence that begins with its name. It quotes nothing of the answer. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError';

  /** Whether a retry may succeed. */
  readonly mayPass: boolean;

  constructor(message: string, { mayPass = false, ...options }: ErrorOptions & { mayPass?: boolean } = {}) {
    super(message, options);
    this.mayPass = mayPass;
  }
}

interface RemoteLimits {
  maxBytes: number;
  /** From the beginning of the first request to the last byte. */
  timeMs: number;
  maxRedirects: number;
  /** Downloads of one owner at a time, so that a slow server takes nobody else's place. */
  perOwner: number;
  /** Sent with each request. */
  headers: Readonly<Record<string, string>>;
}

/** A file that is on its way. */
export interface RemoteBody {
  stream: Readable;
  /** As its server says. */
  bytes?: number;
}

/**
 * Reads files that callers name by an http or https URL. It connects to no private, loopback or link-local address
 * unless the operator allows it: the address of each step is checked after its look-up, and only that one is used.
 */
export class RemoteFiles {
  private readonly turns: FairTurns;

  constructor(
    private readonly allowPrivate: boolean,
    private readonly limits: RemoteLimits,
    private readonly lookUps = new DnsLookUps(),
  ) {
    this.turns = new FairTurns({ keyConcurrency: limits.perOwner });
  }

  /**
   * Retries within the same time where the server's trouble may pass.
   * @param check gets the first bytes, and throws for a file that need not be read on
   * @throws RemoteError, what `check` throws, and the signal's reason
   */
  get(ownerId: string, url: string, check: (head: Buffer) => void, signal?: AbortSignal): Promise<Buffer> {
    return this.turns.run(ownerId, async () => {
      signal?.throwIfAborted();
      const late = AbortSignal.timeout(this.limits.timeMs);
      const either = signal ? AbortSignal.any([signal, late]) : late;
      for (let tries = 0; ; tries++)
        try {
          const { stream } = await this.follow(ownerId, url, either);
          return await this.read(stream, check, either);
        } catch (error) {
          signal?.throwIfAborted();
          if (late.aborted) throw new RemoteError(`took longer than ${this.limits.timeMs / 1000} seconds to come`);
          const reason = isPlain(error) ? explained(error) : error;
          if (!(reason instanceof RemoteError && reason.mayPass) || tries >= pausesMs.length) throw reason;
          await delay(pausesMs[tries], undefined, { signal: either }).catch(() => undefined);
        }
    });
  }

  /**
   * Begins to read a file, whose size and time the caller bounds.
   * @throws RemoteError, and the signal's reason
   */
  async open(ownerId: string, url: string, signal: AbortSignal): Promise<RemoteBody> {
    try {
      return await this.follow(ownerId, url, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw isPlain(error) ? explained(error) : error;
    }
  }

  /** Follows redirects. @returns the body of the answer with the file */
  private async follow(ownerId: string, url: string, signal: AbortSignal): Promise<RemoteBody> {
    const agents = checkedAgents(this.allowPrivate, (hostname, options) =>
      this.lookUps.run(ownerId, hostname, options, signal),
    );
    for (let next = url, left = this.limits.maxRedirects; ; left--) {
      if (!/^https?:$/.test(URL.parse(next)?.protocol ?? ''))
        throw new RemoteError('has an address that does not begin with http:// or https://');
      const { status, headers: answer, data } = await this.ask(next, agents, signal);
      if (status === 200) return this.checked(answer, data);
      data.destroy();
      const location = answer.location as string | undefined;
      if (status < 300 || status > 399 || !location) {
        const mayPass = status === 408 || status === 429 || status >= 500;
        throw new RemoteError(`could not be fetched: its server answered ${status}`, { mayPass });
      }
      if (left === 0) throw new RemoteError(`is behind more than ${this.limits.maxRedirects} redirects`);
      next = URL.parse(asPercents(location), next)?.href ?? '';
    }
  }

  private ask(url: string, agents: ReturnType<typeof checkedAgents>, signal: AbortSignal) {
    return axios.get<Readable>(url, {
      ...agents,
      ...plainRequest,
      signal,
      headers: { ...this.limits.headers, 'Accept-Encoding': 'identity' },
    });
  }

  private checked(answer: Partial<Record<string, unknown>>, stream: Readable): RemoteBody {
    const { maxBytes } = this.limits;
    const length = answer['content-length'];
    const problem =
      ((answer['content-encoding'] ?? 'identity') !== 'identity' && 'came compressed, though that was not asked for') ||
      (Number(length ?? 0) > maxBytes && tooLarge(maxBytes));
    if (!problem) return { stream, ...(length !== undefined && { bytes: Number(length) }) };
    stream.destroy();
    throw new RemoteError(problem);
  }

  private async read(body: Readable, check: (head: Buffer) => void, signal: AbortSignal): Promise<Buffer> {
    const end = (): void => void body.destroy(signal.reason as Error);
    signal.addEventListener('abort', end);
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isChecked = false;
    try {
      await readBody(body, (chunk) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > this.limits.maxBytes) throw new RemoteError(tooLarge(this.limits.maxBytes));
        if (isChecked || bytes < headBytes) return;
        isChecked = true;
        check(Buffer.concat(chunks, headBytes));
      });
      return Buffer.concat(chunks);
    } finally {
      signal.removeEventListener('abort', end);
      body.destroy();
    }
  }
}

const pausesMs = [1000, 4000];

/** Errors of a connection that may pass. */
const passingCodes = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN']);

/** Enough to tell the format. */
const headBytes = 32;

/**
 * Raw bytes beyond ASCII in a header, percent-encoded as in an address. Source:
 * https://url.spec.whatwg.org/#url-parsing on the bytes, as browsers do.
 */
const asPercents = (header: string): string =>
  header.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);

const tooLarge = (maxBytes: number): string => `has more than ${Math.round(maxBytes / 1e6)} MB`;

/** Whether it comes from the network and not from `check`. */
const isPlain = (error: unknown): error is Error =>
  isAxiosError(error) || error instanceof SmallPiecesError || typeof (error as NodeJS.ErrnoException).code === 'string';

function explained(error: Error): RemoteError {
  const cause = isAxiosError(error) ? (error.cause ?? error) : error;
  if (cause instanceof AddressRefusedError)
    return new RemoteError('is at a private, loopback or link-local address, which is not allowed', { cause });
  if (cause instanceof SmallPiecesError) return new RemoteError('comes in too many small pieces', { cause });
  if (cause instanceof InformationError)
    return new RemoteError('could not be fetched: its server sends informational answers without end', { cause });
  const { code, message } = cause as NodeJS.ErrnoException;
  const mayPass = passingCodes.has(code ?? '');
  return new RemoteError(`could not be fetched: its server cannot be reached (${code ?? message})`, { cause, mayPass });
}
