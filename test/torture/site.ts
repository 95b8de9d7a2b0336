import { rm } from 'node:fs/promises';
import { newApiKeySecret, newIdentifier, newWebhookSecret } from '@app/domain';
import { Pool } from 'pg';
import type { QueryResultRow } from 'pg';
import { freePort } from '../support/free-port';
import { quickCollection } from '../support/quick-collection';
import type { Receiver } from '../support/receiver';
import { startReceiver } from '../support/receiver';
import { Caller } from './caller';
import { Ledger } from './ledger';
import type { Size } from './row';
import { ServiceProcess } from './service-process';

type Environment = Record<string, string>;

/** Its folders. */
interface SiteOptions {
  dataDir: string;
  modelsDir: string;
  /** Of its rows. */
  size: Size;
}

/** An api process and where it listens. */
export interface RunningApi {
  process: ServiceProcess;
  url: string;
}

/**
 * Where a row happens, or several one after another: a database, a data folder, the service's processes, a receiver of
 * webhooks, and the ledger of the current row.
 */
export class Site {
  ledger = new Ledger();
  /** Whether no other row follows on this site. */
  isLastRow = true;
  /** What every process of this row gets, besides its own. */
  readonly env: Environment = {
    // Where a row does not test the limits they would be in its way.
    RATE_LIMIT_PER_MINUTE: '0',
    MAX_QUEUED_PER_KEY: '0',
  };
  private pool: Pool;
  private readonly processes: ServiceProcess[] = [];
  private readonly atEnd: (() => Promise<unknown>)[] = [];
  private readonly atRowEnd: (() => Promise<unknown>)[] = [];
  private readonly apis: RunningApi[] = [];
  /** The last one that was started. */
  launcher?: RunningApi;

  readonly dataDir: string;
  /** Steps of a picture that takes a tenth of a second on an idle machine, so that a fault may find it being drawn. */
  readonly lastingSteps: number;
  /** A model that takes LoRA, and in the short form longer for its steps. */
  readonly trainableModel: string;
  private readonly modelsDir: string;
  private readonly workers: number;
  private readonly nodeOptions: readonly string[];

  private constructor(
    { dataDir, modelsDir, size }: SiteOptions,
    public databaseUrl: string,
    readonly receiver: Receiver,
    /** When each webhook came, in ms since the epoch, in the order of the receiver's list. */
    readonly receivedAt: number[],
  ) {
    this.dataDir = dataDir;
    this.modelsDir = modelsDir;
    [this.lastingSteps, this.workers] = size === 'long' ? [2, 2] : [40, 1];
    this.trainableModel = size === 'long' ? 'shapes' : 'shapes-bundled';
    this.nodeOptions = size === 'long' ? [] : quickCollection;
    this.pool = connect(databaseUrl);
  }

  static async open(place: SiteOptions, databaseUrl: string, drop: () => Promise<void>): Promise<Site> {
    const receivedAt: number[] = [];
    const receiver = await startReceiver((_, response) => {
      receivedAt.push(Date.now());
      response.writeHead(204).end();
    });
    const site = new Site(place, databaseUrl, receiver, receivedAt);
    site.atEnd.push(
      () => receiver.close(),
      drop,
      () => rm(place.dataDir, { recursive: true, force: true }),
    );
    return site;
  }

  /** Forgets the last row, so that the next one judges only what is its own; everything is at rest between them. */
  async clear(): Promise<void> {
    // To truncate tables that are in use may end in a deadlock.
    for (const table of ['tasks', 'daily_usage']) await this.query(`DELETE FROM ${table}`);
    this.receiver.received.length = 0;
    this.receivedAt.length = 0;
    this.ledger = new Ledger();
  }

  /** A row is over; its processes go on, for the next row. */
  async endRow(): Promise<void> {
    for (const undo of this.atRowEnd.splice(0)) await undo();
  }

  /** Uses another database from now on. */
  async moveTo(databaseUrl: string): Promise<void> {
    await this.pool.end();
    this.databaseUrl = databaseUrl;
    this.pool = connect(databaseUrl);
  }

  /** What is to be undone when the row is over, last first; after the processes have ended, if they end with it. */
  finally(undo: () => Promise<unknown>): void {
    this.atRowEnd.unshift(undo);
  }

  /** Reads the database, from outside of the service. */
  async query<T extends QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> {
    return (await this.pool.query<T>(text, values)).rows;
  }

  /** Makes a key, as the command line does. */
  async newCaller(api: Pick<RunningApi, 'url'>, { sandbox = false } = {}): Promise<Caller> {
    const { token, prefix, secretHash } = newApiKeySecret();
    await this.query(
      `INSERT INTO api_keys (id, name, prefix, secret_hash, webhook_secret, sandbox, created_at)
       VALUES ($1, 'torture', $2, $3, $4, $5, now())`,
      [newIdentifier(), prefix, secretHash, newWebhookSecret(), sandbox],
    );
    return new Caller(api.url, token, this.ledger);
  }

  /** Starts an api and waits until it serves. One that crashes on purpose meanwhile is no error. */
  async startApi({
    env = {},
    port,
    nodeOptions = [],
  }: { env?: Environment; port?: number; nodeOptions?: string[] } = {}): Promise<RunningApi> {
    const url = `http://127.0.0.1:${port ?? (await freePort())}`;
    const started = this.start('api', { PORT: new URL(url).port, PUBLIC_URL: url, ...env }, nodeOptions);
    if (!(await started.ready(`${url}/health/ready`)) && !env.DARKROOM_CRASH_AT)
      throw new Error(`The api ended:\n${started.output.slice(-2_000)}`);
    const api = { process: started, url };
    this.apis.push(api);
    return api;
  }

  /** The api that an earlier row has left, or a new one. */
  async anyApi(options: Parameters<Site['startApi']>[0] = {}): Promise<RunningApi> {
    return this.apis.find(({ process }) => process.isRunning) ?? this.startApi(options);
  }

  /** Starts a worker and waits until it draws. One that crashes on purpose meanwhile is no error. */
  async startWorker({
    env = {},
    nodeOptions = [],
    health = 'ready',
  }: { env?: Environment; nodeOptions?: string[]; health?: 'ready' | 'live' } = {}): Promise<ServiceProcess> {
    const healthPort = await freePort();
    const started = this.start('inference', { INFERENCE_HEALTH_PORT: String(healthPort), ...env }, nodeOptions);
    if (!(await started.ready(`http://127.0.0.1:${healthPort}/health/${health}`)) && !env.DARKROOM_CRASH_AT)
      throw new Error(`The worker ended:\n${started.output.slice(-2_000)}`);
    return started;
  }

  /**
   * Workers that draw, of which earlier rows may have left some; by default as many as a row needs whose fault is
   * elsewhere.
   */
  anyWorkers(count = this.workers, options: Parameters<Site['startWorker']>[0] = {}): Promise<ServiceProcess[]> {
    const left = this.processes.filter(({ name, isRunning }) => name === 'inference' && isRunning);
    return Promise.all(Array.from({ length: count }, async (_, i) => left[i] ?? (await this.startWorker(options))));
  }

  /** Starts all of the service, with a database of its own; resolves when it serves. */
  async startLauncher(port: number): Promise<RunningApi> {
    const started = this.start('launcher', { PORT: String(port), DATABASE_URL: '' });
    const url = `http://127.0.0.1:${port}`;
    if (!(await started.ready(`${url}/health/ready`)))
      throw new Error(`The launcher ended:\n${started.output.slice(-2_000)}`);
    this.launcher = { process: started, url };
    return this.launcher;
  }

  private start(name: ServiceProcess['name'], env: Environment, nodeOptions: string[] = []): ServiceProcess {
    const started = new ServiceProcess(
      name,
      {
        DATABASE_URL: this.databaseUrl,
        DATA_DIR: this.dataDir,
        MODELS_DIR: this.modelsDir,
        MODEL_FALLBACK: 'on',
        WEBHOOK_ALLOW_PRIVATE: 'on',
        DEVICE: 'cpu',
        INFERENCE_THREADS: '1',
        INFERENCE_MEMORY_MB: '2048',
        ...this.env,
        ...env,
      },
      [...this.nodeOptions, ...nodeOptions],
    );
    this.processes.push(started);
    return started;
  }

  /** The errors and last words of the last processes, for the report of a failure. */
  lastWords(): string {
    return this.processes
      .map(({ name, pid, errors, output }) => [`--- ${name} ${pid}`, ...errors, '…', output.slice(-1_500)].join('\n'))
      .slice(-4)
      .join('\n');
  }

  async close(): Promise<void> {
    for (const running of this.processes.filter(({ isRunning }) => isRunning)) {
      running.signal('SIGCONT');
      await running.end('SIGKILL');
    }
    await this.pool.end();
    await this.endRow();
    for (const undo of this.atEnd) await undo();
  }
}

function connect(databaseUrl: string): Pool {
  const pool = new Pool({ connectionString: databaseUrl, max: 4, application_name: 'torture' });
  // The next query says it; between queries a database may well go away here.
  pool.on('error', () => undefined);
  return pool;
}
