import { setTimeout as sleep } from 'node:timers/promises';
import type { IncomingMessage } from 'node:http';
import { type HubListing, parseListing, readText } from './hub-listing';
import { ModelStoreError } from '../model-store-error';
import { httpGet, TransientError } from './http-get';

/** Where to download models from, and with which limits. */
export interface HubOptions {
  /** Base URL of the hub or of a mirror. */
  endpoint?: string;
  /** Access token; sent only to the endpoint's own origin. */
  token?: string;
  /** How many times in a row a request may fail without receiving a byte. */
  retries?: number;
  /** Wait before the first retry; it doubles each time, up to 30 s. */
  retryDelayMs?: number;
  /** A connection that receives nothing for this long is closed. */
  idleTimeoutMs?: number;
  concurrency?: number;
}

const maxRedirects = 10;

/** Client of the Hugging Face hub's HTTP API: lists a revision and opens its files. */
export class HubClient {
  readonly options: Required<Omit<HubOptions, 'endpoint' | 'token'>>;
  private readonly endpoint: URL;
  private readonly token: string | undefined;

  constructor(options: HubOptions = {}) {
    const { endpoint = 'https://huggingface.co', token, ...rest } = options;
    this.endpoint = new URL(`${endpoint.replace(/(?<!\/)\/+$/, '')}/`);
    this.token = token;
    this.options = { retries: 5, retryDelayMs: 500, idleTimeoutMs: 60_000, concurrency: 4, ...rest };
  }

  /**
   * The files of a revision, and its current commit.
   * @throws ModelStoreError `HubRefused` or `HubUnreachable`
   */
  async list(repository: string, revision: string, signal: AbortSignal): Promise<HubListing> {
    const path = `api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;
    const what = `${repository}@${revision}`;
    return this.withRetries(what, signal, async () => {
      const response = await this.open(new URL(path, this.endpoint), {}, what, signal);
      return parseListing(await readText(response), repository);
    });
  }

  /** Opens a file for reading. @throws TransientError or ModelStoreError when the response is not 200, 206 or 416. */
  async openFile(
    repository: string,
    commit: string,
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const encoded = path.split('/').map(encodeURIComponent).join('/');
    const url = new URL(`${repository}/resolve/${encodeURIComponent(commit)}/${encoded}`, this.endpoint);
    return this.open(url, headers, `${path} of ${repository}`, signal);
  }

  /**
   * Runs `attempt` until it succeeds, with back-off after each transient failure; `progressed` resets
   * the count of failures.
   */
  async withRetries<T>(
    what: string,
    signal: AbortSignal,
    attempt: () => Promise<T>,
    progressed: () => boolean = () => false,
  ): Promise<T> {
    for (let failures = 0; ;) {
      try {
        signal.throwIfAborted();
        return await attempt();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof TransientError)) throw error;
        failures = progressed() ? 1 : failures + 1;
        if (failures > this.options.retries)
          throw new ModelStoreError('HubUnreachable', `${what} could not be downloaded: ${error.message}.`, {
            cause: error,
          });
        const backOffMs = Math.min(this.options.retryDelayMs * 2 ** (failures - 1), 30_000) * (0.5 + Math.random() / 2);
        await sleep(Math.max(backOffMs, error.retryAfterMs ?? 0), undefined, { signal });
      }
    }
  }

  /** Follows redirects itself, because the token must not be sent to another host. */
  private async open(
    url: URL,
    headers: Record<string, string>,
    what: string,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    let at = url;
    for (let hop = 0; hop <= maxRedirects; hop++) {
      const sent: Record<string, string> = { 'user-agent': 'darkroom', 'accept-encoding': 'identity', ...headers };
      if (this.token && at.origin === this.endpoint.origin) sent.authorization = `Bearer ${this.token}`;
      const { idleTimeoutMs } = this.options;
      const response = await httpGet(at, { headers: sent, idleTimeoutMs, signal });
      const { statusCode: status = 0 } = response;
      if (status === 200 || status === 206 || status === 416) return response;
      response.destroy();
      const { location } = response.headers;
      if (status < 300 || status > 399 || !location) throw this.refusal(response, at, what);
      at = this.redirected(at, location);
    }
    throw new ModelStoreError('HubRefused', `${what} is redirected more than ${maxRedirects} times.`);
  }

  private redirected(from: URL, location: string): URL {
    const to = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
    const safe = to?.protocol === 'https:' || (to?.protocol === 'http:' && from.protocol === 'http:');
    if (to && safe) return to;
    throw new ModelStoreError('HubRefused', `${from.host} redirects to an address that is not safe to follow.`);
  }

  private refusal(response: IncomingMessage, at: URL, what: string): Error {
    const { statusCode: status = 0, headers } = response;
    if ([408, 425, 429].includes(status) || status >= 500)
      return new TransientError(`${at.host} answers ${status}`, retryAfterMs(headers['retry-after']));
    // A signed address of the hub's storage expires; asking the hub again returns a new one.
    if (at.origin !== this.endpoint.origin) return new TransientError(`${at.host} answers ${status}`);
    const refuse = (reason: string): ModelStoreError => new ModelStoreError('HubRefused', `${what} ${reason}.`);
    if (headers['x-error-code'] === 'GatedRepo' || (status === 403 && this.token))
      return refuse('is not open to this token: accept its licence on its page at the hub first');
    if (status === 401 || status === 403)
      return refuse(
        this.token
          ? 'does not exist or the token in HF_TOKEN is refused'
          : 'does not exist or needs a token in HF_TOKEN',
      );
    if (status === 404 || status === 410) return refuse(`is not at ${at.host}: check the name and the revision`);
    return refuse(`cannot be had: ${at.host} answers ${status}`);
  }
}

const maxRetryAfterMs = 120_000;

function retryAfterMs(header: string | undefined): number | undefined {
  if (!header) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), maxRetryAfterMs);
}
