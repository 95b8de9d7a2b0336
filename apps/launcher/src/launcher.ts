import { dirname, join } from 'node:path';
import type { Config } from '@app/config';
import { EmbeddedPostgres, migrate } from '@app/database';
import { FileLock, keepDataPrivate, LockHeldError, StartError } from '@app/process';
import { ensureOwnPair } from './own-certificate';
import { ensureFirstKey, type StoredKey } from './first-key';
import { LogFile } from './log';
import { modelToName, prepareDataFolder, requireModel, requirePorts } from './preflight';
import { SupervisedProcess } from './supervised-process';

/** Time for a process to finish its work after it was asked to end. */
const drainMs = 30_000;
/** How long a port or a database may still be in use by an earlier run. */
const leftoverMs = 5_000;
/** `dist/apps`. */
const apps = join(__dirname, '..', '..');

/** How to reach the running service. */
export interface Started {
  url: string;
  publicUrl: string;
  key: StoredKey;
  /** That a first request has to name. */
  model: string | undefined;
}

/** Runs the service on one machine: starts PostgreSQL, the api and the worker in this order, ends them in reverse. */
export class Launcher {
  private lock?: FileLock;
  private postgres?: EmbeddedPostgres;
  private processes: SupervisedProcess[] = [];
  private isStopping = false;
  private readonly forceStop = new AbortController();

  constructor(
    private readonly config: Config,
    private readonly say: (line: string) => void,
    /** Called when the service cannot continue. */
    private readonly fail: (error: Error) => void,
    private readonly isDevelopment = false,
  ) {}

  /**
   * Resolves when the service accepts requests.
   * @throws AlreadyRunningError; StartError with the reason in one sentence
   */
  async start(): Promise<Started> {
    const { config, say } = this;
    prepareDataFolder(config.dataDir);
    this.lock = acquire(join(config.dataDir, 'launcher.lock'));
    keepDataPrivate(config.dataDir);
    const models = requireModel(config.modelsDir);
    const { port, healthPort } = await requirePorts(config, this.lock.takenOver ? leftoverMs : 0);
    const databaseUrl = config.databaseUrl ?? (await this.startPostgres());
    const applied = await migrate(databaseUrl);
    if (applied.length > 0) say(`The database was brought up to date (migrations applied: ${applied.length}).`);
    const key = await ensureFirstKey(databaseUrl, config.dataDir);
    const local = `http://${localHost(config.host)}:${port}`;
    const own = config.lacksCertificate ? await ensureOwnPair(dirname(config.ownCertificate.path), say) : undefined;
    const env = {
      ...process.env,
      ...(own && { CREDENTIALS_CERTIFICATE: own.certificate, CREDENTIALS_KEY: own.key }),
      DATABASE_URL: databaseUrl,
      DATA_DIR: config.dataDir,
      MODELS_DIR: config.modelsDir,
      // Its default depends on DATABASE_URL, which is always set for the child processes.
      MODEL_FALLBACK: config.modelFallback ? 'on' : 'off',
      HOST: config.host,
      PORT: String(port),
      PUBLIC_URL: config.port === port ? config.publicUrl : `http://localhost:${port}`,
      INFERENCE_HEALTH_PORT: String(healthPort),
    };
    say('Starting the api and the worker …');
    this.processes = [
      this.supervise('api', env, `${local}/health`),
      this.supervise('inference', env, `http://127.0.0.1:${healthPort}/health`),
    ];
    await Promise.all(this.processes.map((process) => process.start()));
    if (this.isStopping) throw new StartError('It was stopped while it was starting.');
    this.lock.publish(local);
    const model = modelToName(models, config.modelFallback);
    return { url: local, publicUrl: env.PUBLIC_URL, key, model };
  }

  /** Lets the api and the worker finish their work, then ends PostgreSQL. */
  async stop(): Promise<void> {
    if (this.isStopping) return this.forceStop.abort();
    this.isStopping = true;
    await Promise.all(this.processes.map((process) => process.stop(drainMs, this.forceStop.signal)));
    await this.postgres?.stop();
    this.lock?.release();
  }

  private async startPostgres(): Promise<string> {
    this.say(`Starting PostgreSQL in ${join(this.config.dataDir, 'postgres')} …`);
    try {
      await this.openPostgres();
    } catch (error) {
      if (error instanceof LockHeldError)
        throw new StartError(`The database of ${this.config.dataDir} is in use by process ${error.holder.pid}.`);
      throw new StartError((error as Error).message);
    }
    const { folder, url } = this.postgres!;
    if (folder !== join(this.config.dataDir, 'postgres')) this.say(`Its files are kept in ${folder}.`);
    return url;
  }

  private async openPostgres(port?: number): Promise<void> {
    const postgres = await EmbeddedPostgres.start(this.config.dataDir, { waitMs: leftoverMs, ...(port && { port }) });
    this.postgres = postgres;
    postgres.onExit(() => void (this.isStopping || this.reopenPostgres(postgres)));
  }

  /** Restarts a killed server at the address that the api and the worker know. */
  private async reopenPostgres(ended: EmbeddedPostgres): Promise<void> {
    this.say('PostgreSQL ended and is being restarted.');
    try {
      await ended.stop();
      await this.openPostgres(Number(new URL(ended.url).port));
      if (this.isStopping) await this.postgres?.stop();
    } catch (error) {
      this.fail(error as Error);
    }
  }

  private supervise(name: string, env: NodeJS.ProcessEnv, healthUrl: string): SupervisedProcess {
    const log = new LogFile(join(this.config.dataDir, 'logs', `${name}.log`));
    const main = join(apps, name, 'src', 'main.js');
    const urls = { readyUrl: `${healthUrl}/ready`, liveUrl: `${healthUrl}/live` };
    const { isDevelopment } = this;
    return new SupervisedProcess({ name, main, env, ...urls, isDevelopment }, log, this.say);
  }
}

function acquire(file: string): FileLock {
  try {
    return FileLock.acquire(file);
  } catch (error) {
    if (error instanceof LockHeldError) throw new AlreadyRunningError(error.holder.pid, error.holder.url);
    throw error;
  }
}

/** The address at which a server that listens on `host` is reached from this machine. */
function localHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** The service is already running, so there is nothing to do. */
export class AlreadyRunningError extends Error {
  constructor(
    readonly pid: number,
    readonly url: string | undefined,
  ) {
    super(
      url
        ? `Darkroom is already running at ${url} (process ${pid}).`
        : `Darkroom is already being started by process ${pid}.`,
    );
    this.name = 'AlreadyRunningError';
  }
}
