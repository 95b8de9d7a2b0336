import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Config, CONFIG } from '@app/config';
import { ClockWatch, probeWrite } from '@app/database';
import { cached, mayReadMetrics, measureHealth, Metrics, readinessOf } from '@app/observability';
import { keepAliveMs, ListenError, serviceVersion } from '@app/process';
import { WakeUps } from '@app/queue';
import { dataDisks, IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Engines } from '../engine-client/engines';
import { PictureCredentials } from '../pictures/picture-credentials';

/** A write test of a remote store costs money. */
const storageCheckMs = 15_000;
/** However often health is requested, the database is written at most this often. */
const databaseCheckMs = 1_000;

interface Answer {
  status: number;
  type: string;
  body: string;
}

/** Serves `/health/live`, `/health/ready` (everything that the worker needs to draw) and `/metrics`. */
@Injectable()
export class HealthServer {
  private readonly server: Server;
  private readonly checks = {
    database: cached(() => probeWrite(this.dataSource), databaseCheckMs),
    queue: () => this.wakeUps.check(),
    storage: cached(() => this.storage.check(), storageCheckMs),
    engine: () => this.engines.ensureRunning(),
    clock: async () => this.clock.agrees,
    credentials: () => this.credentials.check(),
  };
  private stopping = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly wakeUps: WakeUps,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly engines: Engines,
    private readonly clock: ClockWatch,
    private readonly credentials: PictureCredentials,
    private readonly metrics: Metrics,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    measureHealth(metrics, this.checks, async () => (await dataDisks(config)).at(0)?.free);
    const help = 'When the certificate ends that pictures are signed with, in seconds since 1970.';
    metrics.gauge('credentials_expiration_timestamp_seconds', { help }, async (gauge) => {
      const end = await credentials.end();
      if (end) gauge.set(end.getTime() / 1000);
    });
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
    if (url === '/health/live') return json(200, { status: 'ok', version: serviceVersion });
    if (url === '/metrics' && !mayReadMetrics(request, this.config.metricsToken))
      return json(401, { status: 'unauthorized' });
    if (url === '/metrics') return { status: 200, type: this.metrics.contentType, body: await this.metrics.text() };
    if (url !== '/health/ready') return json(404, { status: 'not found' });
    const found = await readinessOf(this.checks);
    const status = this.stopping ? 'unavailable' : found.status;
    return json(status === 'unavailable' ? 503 : 200, { status, version: serviceVersion, checks: found.checks });
  }
}

function json(status: number, body: object): Answer {
  return { status, type: 'application/json', body: JSON.stringify(body) };
}
