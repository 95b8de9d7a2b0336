import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type HealthChecks, mayReadMetrics, type Metrics, readinessOf } from '@app/observability';
import { keepAliveMs, ListenError } from '@app/process';

interface Answer {
  status: number;
  type: string;
  body: string;
}

/** Serves `/health/live`, `/health/ready` and `/metrics`. */
export class HealthServer {
  private readonly server: Server;
  private stopping = false;

  constructor(
    private readonly checks: HealthChecks,
    private readonly metrics?: Pick<Metrics, 'contentType' | 'text'>,
    private readonly metricsToken?: string,
  ) {
    this.server = createServer({ keepAliveTimeout: keepAliveMs }, (request, response) => {
      void this.answer(request).then(({ status, type, body }) => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
        response.end(body);
      });
    });
  }

  /** @returns the port it listens on, which the system chooses if `port` is 0. @throws ListenError */
  async listen(port: number, host: string): Promise<number> {
    this.server.listen(port, host);
    await once(this.server, 'listening').catch((error: unknown) => {
      throw new ListenError(error, { variable: 'INFERENCE_HEALTH_PORT', port, host });
    });
    return (this.server.address() as AddressInfo).port;
  }

  /** From now on the process is alive but not ready for more work. */
  stop(): void {
    this.stopping = true;
  }

  async close(): Promise<void> {
    if (!this.server.listening) return;
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  private async answer(request: IncomingMessage): Promise<Answer> {
    const { url } = request;
    if (url === '/health/live') return json(200, { status: 'ok' });
    if (url === '/metrics' && !mayReadMetrics(request, this.metricsToken)) return json(401, { status: 'unauthorized' });
    if (url === '/metrics' && this.metrics)
      return { status: 200, type: this.metrics.contentType, body: await this.metrics.text() };
    if (url !== '/health/ready') return json(404, { status: 'not found' });
    const found = await readinessOf(this.checks);
    const status = this.stopping ? 'unavailable' : found.status;
    return json(status === 'unavailable' ? 503 : 200, { status, checks: found.checks });
  }
}

function json(status: number, body: object): Answer {
  return { status, type: 'application/json', body: JSON.stringify(body) };
}
