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

  answered(status: number, headers?: Headers, text = ''): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status === 503 && !headers?.get('retry-after')) this.bare503++;
    if (status >= 500 && status !== 503 && this.errors.length < 3) this.errors.push(`${status} ${text.slice(0, 300)}`);
  }

  /** Responses of 500 and above. */
  serverErrors({ mayBeUnavailable }: { mayBeUnavailable: boolean }): number {
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
