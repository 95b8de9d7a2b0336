import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { EmbeddedPostgres } from '@app/database';
import { newApiKeySecret, newIdentifier, newWebhookSecret } from '@app/domain';
import { Pool, type QueryResultRow } from 'pg';
import { freePort } from '../support/free-port';
import { type Receiver, startReceiver } from '../support/receiver';
import { quickCollection, ServiceProcess, startTimeoutMs } from '../support/service-process';
import { until } from '../support/until';
import { Caller, Ledger } from './caller';
import type { Size } from './row';

type Environment = Record<string, string>;

interface StartOptions {
  env?: Environment;
  port?: number;
  nodeOptions?: string[];
  /** State of a worker that is waited for. */
  health?: 'ready' | 'live';
  /** A built checkout of another version. */
  checkout?: string;
}

/** How the log begins a line of an error. */
const errorLine = '{"level":50';

/** Options of Node for a process that first runs a file of this folder. */
export const preload = (file: string): string[] => ['--require', resolve('test', 'torture', file)];

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
  /** Variables of every process of this row, besides its own. */
  readonly env: Environment = {
    // Where a row does not test the limits they would be in its way.
    RATE_LIMIT_PER_MINUTE: '0',
    MAX_QUEUED_PER_KEY: '0',
  };
  private pool: Pool;
  private readonly processes: ServiceProcess[] = [];
  private readonly atRowEnd: (() => Promise<unknown>)[] = [];
  private readonly apis: RunningApi[] = [];
  /** The last one that was started. */
  launcher?: RunningApi;

  /** Steps of a picture that takes a tenth of a second on an idle machine, so that a fault may find it being drawn. */
  readonly lastingSteps: number;
  /** A model that takes LoRA, and in the short form longer for its steps. */
  readonly trainableModel: string;
  private readonly workers: number;
  private readonly nodeOptions: readonly string[];

  private constructor(
    readonly dataDir: string,
    private readonly modelsDir: string,
    size: Size,
    public databaseUrl: string,
    readonly receiver: Receiver,
    /** When each webhook came, in ms since the epoch, in the order of the receiver's list. */
    readonly receivedAt: number[],
  ) {
    [this.lastingSteps, this.workers] = size === 'long' ? [2, 2] : [40, 1];
    this.trainableModel = size === 'long' ? 'shapes' : 'shapes-bundled';
    this.nodeOptions = size === 'long' ? [] : quickCollection;
    this.pool = connect(databaseUrl);
  }

  static async open(dataDir: string, modelsDir: string, size: Size, databaseUrl: string): Promise<Site> {
    const receivedAt: number[] = [];
    const receiver = await startReceiver((_, response) => {
      receivedAt.push(Date.now());
      response.writeHead(204).end();
    });
    return new Site(dataDir, modelsDir, size, databaseUrl, receiver, receivedAt);
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

  /** Work to be undone when the row is over, last first; after the processes have ended, if they end with it. */
  finally(undo: () => Promise<unknown>): void {
    this.atRowEnd.unshift(undo);
  }

  /** Reads the database, from outside of the service. */
  async query<T extends QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> {
    return (await this.pool.query<T>(text, values)).rows;
  }

  /** Makes a key, as the command line does. */
  async newCaller(api: Pick<RunningApi, 'url'>): Promise<Caller> {
    const { token, prefix, secretHash } = newApiKeySecret();
    await this.query(
      `INSERT INTO api_keys (id, name, prefix, secret_hash, webhook_secret, created_at)
       VALUES ($1, 'torture', $2, $3, $4, now())`,
      [newIdentifier(), prefix, secretHash, newWebhookSecret()],
    );
    return new Caller(api.url, token, this.ledger);
  }

  /** Starts an api and waits until it serves. */
  async startApi({ port, ...options }: StartOptions = {}): Promise<RunningApi> {
    const url = `http://127.0.0.1:${port ?? (await freePort())}`;
    const env = { PORT: new URL(url).port, PUBLIC_URL: url, ...options.env };
    const api = { process: await this.start('api', { ...options, env }, `${url}/health/ready`), url };
    this.apis.push(api);
    return api;
  }

  /** The api that an earlier row has left, or a new one. */
  async anyApi(options: StartOptions = {}): Promise<RunningApi> {
    return this.apis.find(({ process }) => process.isRunning) ?? this.startApi(options);
  }

  /** Starts a worker and waits until it draws. */
  async startWorker({ health = 'ready', ...options }: StartOptions = {}): Promise<ServiceProcess> {
    const port = await freePort();
    const env = { INFERENCE_HEALTH_PORT: String(port), ...options.env };
    return this.start('inference', { ...options, env }, `http://127.0.0.1:${port}/health/${health}`);
  }

  /**
   * Workers that draw, of which earlier rows may have left some; by default as many as a row needs whose fault is
   * elsewhere.
   */
  anyWorkers(count = this.workers, options: StartOptions = {}): Promise<ServiceProcess[]> {
    const left = this.processes.filter(({ name, isRunning }) => name === 'inference' && isRunning);
    return Promise.all(Array.from({ length: count }, async (_, i) => left[i] ?? (await this.startWorker(options))));
  }

  /** Workers that run. */
  workerPids(): number[] {
    return this.processes.filter(({ name, isRunning }) => name === 'inference' && isRunning).map(({ pid }) => pid);
  }

  /** Starts all of the service, with a database of its own, which is read from now on; resolves when it serves. */
  async startLauncher(port: number): Promise<RunningApi> {
    const url = `http://127.0.0.1:${port}`;
    const env = { PORT: String(port), DATABASE_URL: '' };
    this.launcher = { process: await this.start('launcher', { env }, `${url}/health/ready`), url };
    await this.moveTo(EmbeddedPostgres.runningUrl(this.dataDir)!);
    return this.launcher;
  }

  /** Starts a process and waits until it answers. One that crashes on purpose meanwhile is no error. */
  private async start(
    name: ServiceProcess['name'],
    { env = {}, nodeOptions = [], checkout }: StartOptions,
    readyUrl: string,
  ): Promise<ServiceProcess> {
    const started = new ServiceProcess(
      name,
      {
        DATABASE_URL: this.databaseUrl,
        DATA_DIR: this.dataDir,
        MODELS_DIR: this.modelsDir,
        MODEL_FALLBACK: 'on',
        WEBHOOK_ALLOW_PRIVATE: 'on',
        INFERENCE_MEMORY_MB: '2048',
        ...this.env,
        ...env,
      },
      [...this.nodeOptions, ...nodeOptions],
      [],
      checkout,
    );
    this.processes.push(started);
    await untilOk(readyUrl, () => started.isRunning);
    if (!started.isRunning && !env.DARKROOM_CRASH_AT)
      throw new Error(`The ${name} ended:\n${started.output.slice(-2_000)}`);
    return started;
  }

  /** The errors and last words of the last processes, for the report of a failure. */
  lastWords(): string {
    const words = this.processes.slice(-4).map(({ name, pid, output }) => {
      const errors = output.split('\n').filter((line) => line.startsWith(errorLine));
      return [`--- ${name} ${pid}`, ...errors.slice(0, 5), '…', output.slice(-1_500)].join('\n');
    });
    return words.join('\n');
  }

  async close(): Promise<void> {
    for (const running of this.processes.filter(({ isRunning }) => isRunning)) {
      running.signal('SIGCONT');
      await running.end('SIGKILL');
    }
    await this.pool.end();
    await this.endRow();
    await this.receiver.close();
    await rm(this.dataDir, { recursive: true, force: true });
  }
}

/** Resolves when a URL answers 2xx, or at once when it does not matter any more. */
export async function untilOk(url: string, doesMatter: () => boolean): Promise<void> {
  const isOk = async (): Promise<boolean> => {
    const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
    await answer?.body?.cancel();
    return answer?.ok ?? false;
  };
  await until(async () => !doesMatter() || (await isOk()), `${url} is ready`, startTimeoutMs);
}

function connect(databaseUrl: string): Pool {
  const pool = new Pool({ connectionString: databaseUrl, max: 4, application_name: 'torture' });
  // The next query says it; between queries a database may well go away here.
  pool.on('error', () => undefined);
  return pool;
}
