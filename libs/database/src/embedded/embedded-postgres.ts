import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { FileLock, LockHeldError } from '@app/process';
import { escapeIdentifier } from 'pg';
import { SteadyClient } from '../pool-options';
import { createCluster, databaseName, readPassword } from './cluster';
import { prepareClusterHome } from './cluster-home';
import { type EmbeddedPostgresOptions, endAbandonedServer, startServer, stopTimeoutMs } from './server-process';

/**
 * A PostgreSQL server of our own in `<dataDir>/postgres`, on a free loopback port, with a random password. It ends with
 * this process, however this process ends. Only one process at a time can open it.
 */
export class EmbeddedPostgres {
  private constructor(
    /** Connection URL, password included. */
    readonly url: string,
    /** Of the cluster, without symbolic links. */
    readonly folder: string,
    private readonly server: ChildProcess,
    private readonly lock: FileLock,
    private readonly exited: Promise<unknown>,
  ) {}

  /**
   * Makes the cluster if there is none, stops a server that an earlier process left behind, and starts.
   * @throws LockHeldError when another process has the database open; otherwise an Error with the server's own message.
   */
  static async start(dataDir: string, options: EmbeddedPostgresOptions = {}): Promise<EmbeddedPostgres> {
    forgetOtherServers();
    const home = await prepareClusterHome(dataDir);
    const lock = await acquire(lockFile(dataDir), options.waitMs ?? 0);
    try {
      const password = await readPassword(home);
      await createCluster(home);
      await endAbandonedServer(join(home.folder, 'data'));
      const { server, port } = await startServer(home, join(dataDir, 'logs', 'postgres.log'), options);
      const exited = server.exitCode === null ? once(server, 'exit') : Promise.resolve();
      const url = `postgres://${databaseName}:${password}@127.0.0.1:${port}/${databaseName}`;
      const postgres = new EmbeddedPostgres(url, home.folder, server, lock, exited);
      try {
        await createDatabase(url);
        lock.publish(url);
      } catch (error) {
        await postgres.stop();
        throw error;
      }
      return postgres;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** The URL of a data folder's running server, whichever process runs it. */
  static runningUrl(dataDir: string): string | undefined {
    forgetOtherServers();
    return FileLock.holder(lockFile(dataDir))?.url;
  }

  /** Calls back once when the server ends, for whatever reason. */
  onExit(listener: () => void): void {
    void this.exited.then(listener);
  }

  /** Ends all connections and the server. Also resolves when the server has already ended. */
  async stop(): Promise<void> {
    this.server.kill('SIGINT');
    const ended = await Promise.race([this.exited.then(() => true), delay(stopTimeoutMs, false, { ref: false })]);
    if (!ended) {
      this.server.kill('SIGQUIT');
      await this.exited;
    }
    this.lock.release();
  }
}

const lockFile = (dataDir: string): string => join(dataDir, 'postgres.lock');

/** The driver obeys variables such as PGSSLMODE and PGOPTIONS, which a shell has for another server than ours. */
function forgetOtherServers(): void {
  for (const name of Object.keys(process.env)) if (/^PG[A-Z]/.test(name)) delete process.env[name];
}

async function acquire(file: string, waitMs: number): Promise<FileLock> {
  for (const deadline = Date.now() + waitMs; ; await delay(50))
    try {
      return FileLock.acquire(file);
    } catch (error) {
      if (!(error instanceof LockHeldError) || Date.now() >= deadline) throw error;
    }
}

async function createDatabase(url: string): Promise<void> {
  const address = new URL(url);
  address.pathname = '/postgres';
  const client = new SteadyClient({ connectionString: address.href });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [databaseName]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${escapeIdentifier(databaseName)}`);
  } finally {
    await client.end();
  }
}
