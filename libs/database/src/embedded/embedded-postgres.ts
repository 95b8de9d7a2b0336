import type { ChildProcess } from 'node:child_process';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { chown, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { FileLock, LockHeldError, processCommand } from '@app/process';
import { escapeIdentifier } from 'pg';
import type { ClusterHome } from './cluster-home';
import { prepareClusterHome } from './cluster-home';
import { SteadyClient } from '../pool-options';

const name = 'darkroom';
const startTimeoutMs = 60_000;
const stopTimeoutMs = 15_000;
const pollMs = 10;
/** A longer log of the server is set aside when it starts. */
const logLimitBytes = 16 * 2 ** 20;

/** How the server is run; every part may be left out. */
export interface EmbeddedPostgresOptions {
  /** Further settings of the server, as in postgresql.conf. */
  settings?: Readonly<Record<string, string>>;
  /** Port to listen on; a free one by default. */
  port?: number;
  /** How long to wait for another process that has the database open, in ms. Default 0. */
  waitMs?: number;
}

/**
 * A PostgreSQL server of our own in `<dataDir>/postgres`, on a free loopback port, reached with a random password.
 * It ends with this process, however this process ends. One process at a time has it open.
 */
export class EmbeddedPostgres {
  private constructor(
    /** Connection URL, password included. */
    readonly url: string,
    /** Where the cluster really lies. */
    readonly folder: string,
    private readonly server: ChildProcess,
    private readonly lock: FileLock,
    private readonly exited: Promise<unknown>,
  ) {}

  /**
   * Makes the cluster when there is none, ends a server that an earlier process left behind, and starts.
   * @throws LockHeldError when another process has the database open; Error with the server's own words otherwise.
   */
  static async start(dataDir: string, options: EmbeddedPostgresOptions = {}): Promise<EmbeddedPostgres> {
    const home = await prepareClusterHome(dataDir);
    const lock = await acquire(lockFile(dataDir), options.waitMs ?? 0);
    try {
      const password = await readPassword(home);
      await createCluster(home);
      await endAbandonedServer(join(home.folder, 'data'));
      const { server, port } = await startServer(home, join(dataDir, 'logs', 'postgres.log'), options);
      const exited = server.exitCode === null ? once(server, 'exit') : Promise.resolve();
      const url = `postgres://${name}:${password}@127.0.0.1:${port}/${name}`;
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

  /** The connection URL of the server that some process runs for a data folder, if one does. */
  static runningUrl(dataDir: string): string | undefined {
    return FileLock.holder(lockFile(dataDir))?.url;
  }

  /** Calls back once when the server ends, asked to or not. */
  onExit(listener: () => void): void {
    void this.exited.then(listener);
  }

  /** Ends all connections and the server. Resolves as well when the server is gone already. */
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

async function acquire(file: string, waitMs: number): Promise<FileLock> {
  for (const deadline = Date.now() + waitMs; ; await delay(50))
    try {
      return FileLock.acquire(file);
    } catch (error) {
      if (!(error instanceof LockHeldError) || Date.now() >= deadline) throw error;
    }
}

/** The password lies beside the cluster for as long as the cluster does, in a file that only its owner reads. */
async function readPassword(home: ClusterHome): Promise<string> {
  const file = join(home.folder, 'password');
  if (!existsSync(file)) {
    const unfinished = `${file}.new`;
    await rm(unfinished, { force: true });
    const handle = await open(unfinished, 'wx', 0o600);
    await handle.writeFile(randomBytes(24).toString('hex'));
    await handle.sync();
    await handle.close();
    if (home.user) await chown(unfinished, home.user.uid, home.user.gid);
    await rename(unfinished, file);
  }
  return (await readFile(file, 'utf8')).trim();
}

/** Made aside and renamed, so that a crash at any moment leaves either no cluster or a whole one. */
async function createCluster(home: ClusterHome): Promise<void> {
  const data = join(home.folder, 'data');
  if (existsSync(data)) return;
  const unfinished = `${data}.new`;
  await rm(unfinished, { recursive: true, force: true });
  const args = ['-D', unfinished, '--username', name, '--pwfile', join(home.folder, 'password')];
  args.push('--auth', 'scram-sha-256', '--encoding', 'UTF8', '--no-instructions');
  // The built-in collation does not change with the system's libraries, so indexes never go stale.
  args.push('--locale', 'C', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8');
  const options = { ...home.user, cwd: home.folder, env: serverEnvironment() };
  await promisify(execFile)(join(home.binaries, 'initdb'), args, options).catch(
    (error: Error & { stderr?: string }) => {
      throw new Error(`PostgreSQL cannot make its files in ${home.folder}: ${error.stderr?.trim() || error.message}`);
    },
  );
  await rename(unfinished, data);
}

/** Ends a server that still has this cluster open though the process that started it is gone. */
async function endAbandonedServer(data: string): Promise<void> {
  const pidFile = join(data, 'postmaster.pid');
  const pid = (await readStatus(data))?.pid;
  if (pid === undefined) return;
  // The id may have gone to another program since; a server of ours has the cluster among its words.
  const isServer = (): boolean => {
    const [program, ...words] = processCommand(pid);
    return program !== undefined && basename(program) === 'postgres' && words.includes(data);
  };
  for (const [name, timeoutMs] of [
    ['SIGINT', stopTimeoutMs],
    ['SIGQUIT', stopTimeoutMs],
  ] as const) {
    if (isServer()) signal(pid, name);
    for (const deadline = Date.now() + timeoutMs; isServer() && Date.now() < deadline;) await delay(pollMs);
  }
  if (isServer()) throw new Error(`PostgreSQL (process ${pid}) still has ${data} open and does not end.`);
  // What a server killed with -9 leaves makes PostgreSQL refuse when the id now belongs to some other program.
  await rm(pidFile, { force: true });
}

async function startServer(home: ClusterHome, logFile: string, options: EmbeddedPostgresOptions) {
  const data = join(home.folder, 'data');
  mkdirSync(dirname(logFile), { recursive: true, mode: 0o700 });
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) > logLimitBytes) renameSync(logFile, `${logFile}.1`);
  for (const deadline = Date.now() + startTimeoutMs; ; await delay(100)) {
    const port = options.port ?? (await freePort());
    const logStart = existsSync(logFile) ? (await stat(logFile)).size : 0;
    const server = spawnServer(home, data, logFile, {
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: '',
      max_connections: '100',
      // Nobody replicates from this server; the log then carries less.
      wal_level: 'minimal',
      max_wal_senders: '0',
      jit: 'off',
      lc_messages: 'C',
      log_timezone: 'UTC',
      log_checkpoints: 'off',
      timezone: 'UTC',
      ...options.settings,
    });
    if (await isReady(server, data, deadline)) return { server, port };
    const said = (await readFile(logFile)).subarray(logStart).toString();
    // The port may be taken between the look and the start; a dead server's memory is freed when its last process ends.
    const passing = /Address already in use|pre-existing shared memory block/.test(said);
    if (!passing || Date.now() > deadline) {
      const reason = /(?:FATAL|ERROR|PANIC): +(.*)/.exec(said)?.[1] ?? `see ${logFile}`;
      throw new Error(`PostgreSQL does not start in ${data}: ${reason}.`);
    }
  }
}

/**
 * A shell in front leaves a watcher behind that ends the server when the pipe to this process breaks, which also `kill -9`
 * brings about, and then becomes the server. A session of its own keeps Ctrl-C away: the server ends last, when told to.
 */
function spawnServer(home: ClusterHome, data: string, logFile: string, settings: Record<string, string>): ChildProcess {
  const script = '( (read -r done <&3 || kill -INT $$) 2>/dev/null & ) >/dev/null 2>&1; exec "$0" "$@" 3<&-';
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const log = openSync(logFile, 'a', 0o600);
  try {
    const server = spawn('/bin/sh', ['-c', script, join(home.binaries, 'postgres'), '-D', data, ...flags], {
      ...home.user,
      cwd: home.folder,
      env: serverEnvironment(),
      detached: true,
      stdio: ['ignore', log, log, 'pipe'],
    });
    const leash = server.stdio[3] as NodeJS.WritableStream;
    leash.on('error', () => undefined);
    server.once('exit', () => leash.end('ended\n'));
    return server;
  } finally {
    closeSync(log);
  }
}

/** False when the server ended before it took connections. */
async function isReady(server: ChildProcess, data: string, deadline: number): Promise<boolean> {
  while (server.exitCode === null && server.signalCode === null) {
    const status = await readStatus(data);
    if (status?.pid === server.pid && status?.state === 'ready') return true;
    if (Date.now() > deadline) server.kill('SIGQUIT');
    await delay(pollMs);
  }
  return false;
}

/** What a server writes about itself: its process id in the first line, its state in the eighth. */
async function readStatus(data: string): Promise<{ pid: number; state: string } | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  return pid > 0 ? { pid, state: lines[7]?.trim() ?? '' } : undefined;
}

async function createDatabase(url: string): Promise<void> {
  const address = new URL(url);
  address.pathname = '/postgres';
  const client = new SteadyClient({ connectionString: address.href });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Nothing of the service's own environment, which may hold secrets, is handed on. */
const serverEnvironment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' });

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended in between.
  }
}
