import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What of the process is well, by name. */
export type HealthChecks = Readonly<Record<string, () => Promise<boolean>>>;

/** Answers `/health/live` and `/health/ready` for whoever watches over this process. */
export class HealthServer {
  private readonly server: Server;
  private stopping = false;

  constructor(private readonly checks: HealthChecks) {
    this.server = createServer((request, response) => {
      void this.answer(request.url ?? '').then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
        response.end(JSON.stringify(body));
      });
    });
  }

  /** @returns the port it listens on, which the system chooses when `port` is 0 */
  async listen(port: number, host: string): Promise<number> {
    this.server.listen(port, host);
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  /** From now on the process is not ready for more work, though it lives. */
  stop(): void {
    this.stopping = true;
  }

  async close(): Promise<void> {
    if (!this.server.listening) return;
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  private async answer(url: string): Promise<{ status: number; body: object }> {
    if (url === '/health/live') return { status: 200, body: { status: 'ok' } };
    if (url !== '/health/ready') return { status: 404, body: { status: 'not found' } };
    const names = Object.keys(this.checks);
    const results = await Promise.all(names.map((name) => this.checks[name]().catch(() => false)));
    const checks = Object.fromEntries(names.map((name, i) => [name, results[i]]));
    const isReady = !this.stopping && results.every(Boolean);
    return { status: isReady ? 200 : 503, body: { status: isReady ? 'ok' : 'unavailable', checks } };
  }
}
