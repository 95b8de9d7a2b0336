import { setTimeout as delay } from 'node:timers/promises';

/** A response; status 0: there was none. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** A Generation as the service returns it. */
export interface GenerationBody {
  id: string;
  /** A Prompt has none. */
  status?: string;
  error: string | null;
  images: string[];
  metadata: Record<string, unknown> | null;
}

/** One acknowledged request for a picture. */
export interface Entry {
  id: string;
  hasWebhook: boolean;
  /** A later request on it that got a 2xx, if any, and when, in ms since the epoch. */
  ending?: { kind: 'canceled' | 'deleted'; at: number };
}

/** Everything the service acknowledged, recorded outside of it. */
export class Ledger {
  readonly entries = new Map<string, Entry>();
  /** Responses by status; 0: there was none, because the connection broke. */
  readonly statuses = new Map<number, number>();
  /** Responses of 503 without Retry-After. */
  bare503 = 0;
  /** The bodies of the first few responses of 500 and above. */
  readonly errors: string[] = [];

  acknowledge(id: string, hasWebhook: boolean): void {
    this.entries.set(id, { id, hasWebhook });
  }

  answered(reply: number, headers?: Headers, text = ''): void {
    // A balancer says so where the connection to an api broke: one that it had just opened, as the api stopped listening.
    const status = reply === 502 ? 0 : reply;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status === 503 && !headers?.get('retry-after')) this.bare503++;
    if (status >= 500 && status !== 503 && this.errors.length < 3) this.errors.push(`${status} ${text.slice(0, 300)}`);
  }

  /** Responses of 500 and above. */
  serverErrors(mayBeUnavailable = false): number {
    let sum = mayBeUnavailable ? this.bare503 : (this.statuses.get(503) ?? 0);
    for (const [status, count] of this.statuses) if (status >= 500 && status !== 503) sum += count;
    return sum;
  }

  summary(): string {
    return [...this.statuses]
      .sort(([a], [b]) => a - b)
      .map(([status, count]) => `${count} x ${status || 'no answer'}`)
      .join(', ');
  }
}

/** A caller of the api who records every acknowledged request. */
export class Caller {
  constructor(
    private readonly url: string,
    readonly token: string,
    private readonly ledger: Ledger,
  ) {}

  /** This caller at another process. */
  to(url: string): Caller {
    return new Caller(url, this.token, this.ledger);
  }

  /** One request; never throws because of the service or the network. */
  async request(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    let answer: Answer = { status: 0, headers: new Headers(), text: '' };
    try {
      const response = await fetch(this.url + path, {
        method,
        headers: {
          authorization: `Bearer ${this.token}`,
          ...(body && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      });
      answer = { status: response.status, headers: response.headers, text: await response.text() };
    } catch {
      // The process died or the reply broke off: nothing was promised.
    }
    this.ledger.answered(answer.status, answer.headers, answer.text);
    return answer;
  }

  /**
   * Requests a small picture of two steps; a 201 goes into the ledger.
   * @returns the record's id if it was acknowledged, and the whole response.
   */
  async create(
    fields: { webhook?: string; [name: string]: unknown } = {},
    headers: Record<string, string> = {},
  ): Promise<{ id?: string; answer: Answer }> {
    const body = { prompt: 'a red circle on a blue background', model: 'shapes', steps: 2, ...fields };
    const answer = await this.request('POST', '/v1/sd/text-to-image', body, headers);
    if (answer.status !== 201) return { answer };
    const { id } = JSON.parse(answer.text) as GenerationBody;
    this.ledger.acknowledge(id, fields.webhook !== undefined);
    return { id, answer };
  }

  /** Requests `count` pictures, four at a time; rejected and unanswered requests are repeated. */
  async createMany(count: number, fields: Parameters<Caller['create']>[0] = {}): Promise<string[]> {
    const ids: string[] = [];
    const deadline = Date.now() + 120_000;
    let wanted = count;
    const one = async (): Promise<void> => {
      while (wanted > 0) {
        wanted--;
        const { id } = await this.create(fields);
        if (id) ids.push(id);
        else {
          if (Date.now() > deadline) throw new Error(`Not acknowledged: ${this.ledger.summary()}.`);
          wanted++;
          await delay(100);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(4, count) }, one));
    return ids;
  }

  /** Cancels or deletes; a 2xx goes into the ledger. */
  async end(id: string, kind: 'canceled' | 'deleted'): Promise<Answer> {
    const path = `/v1/sd/text-to-image/${id}`;
    const answer =
      kind === 'canceled' ? await this.request('POST', `${path}/cancel`) : await this.request('DELETE', path);
    const entry = this.ledger.entries.get(id);
    if (entry && answer.status >= 200 && answer.status < 300) entry.ending = { kind, at: Date.now() };
    return answer;
  }
}
