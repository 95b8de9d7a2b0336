import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { readFile, rm, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processCommand } from '@app/process';
import type { ClusterHome } from './cluster-home';
import { serverEnvironment } from './cluster';

const startTimeoutMs = 60_000;
/** How long a server may take to end. */
export const stopTimeoutMs = 15_000;
const pollMs = 10;
/** A longer server log is renamed at startup. */
const logLimitBytes = 16 * 2 ** 20;

/** How the server is run; all optional. */
export interface EmbeddedPostgresOptions {
  /** Further settings of the server, as in postgresql.conf. */
  settings?: Readonly<Record<string, string>>;
  /** Port to listen on; a free one by default. */
  port?: number;
  /** Wait for another process that has the database open, in ms. Default 0. */
  waitMs?: number;
}

/** Stops a server that still has this cluster open although the process that started it is gone. */
export async function endAbandonedServer(data: string): Promise<void> {
  const pidFile = join(data, 'postmaster.pid');
  const pid = (await readStatus(data))?.pid;
  if (pid === undefined) return;
  // Another program may have this process id by now; our server has the cluster in its command line.
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
  // After kill -9 PostgreSQL refuses to start if another program now has the process id in its pid file.
  await rm(pidFile, { force: true });
}

/**
 * @returns the server, and the port on which it accepts connections.
 * @throws Error with the server's own message if it does not start.
 */
export async function startServer(
  home: ClusterHome,
  logFile: string,
  options: EmbeddedPostgresOptions,
): Promise<{ server: ChildProcess; port: number }> {
  const data = join(home.folder, 'data');
  mkdirSync(dirname(logFile), { recursive: true, mode: 0o700 });
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) > logLimitBytes) renameSync(logFile, `${logFile}.1`);
  for (const deadline = Date.now() + startTimeoutMs; ; await delay(100)) {
    const port = options.port ?? (await freePort());
    const logStart = existsSync(logFile) ? (await stat(logFile)).size : 0;
    const server = spawnServer(home, data, logFile, settingsOf(port, options));
    if (await isReady(server, data, deadline)) return { server, port };
    const said = (await readFile(logFile)).subarray(logStart).toString();
    // Another program may take the port before the server does. A dead server's shared memory is freed when
    // its last process ends.
    const passing = /Address already in use|pre-existing shared memory block/.test(said);
    if (!passing || Date.now() > deadline) {
      const reason = /(?:FATAL|ERROR|PANIC): +(.*)/.exec(said)?.[1] ?? `see ${logFile}`;
      throw new Error(`PostgreSQL does not start in ${data}: ${reason}.`);
    }
  }
}

const settingsOf = (port: number, { settings }: EmbeddedPostgresOptions): Record<string, string> => ({
  listen_addresses: '127.0.0.1',
  port: String(port),
  unix_socket_directories: '',
  max_connections: '100',
  // Without replication the log can contain less.
  wal_level: 'minimal',
  max_wal_senders: '0',
  jit: 'off',
  lc_messages: 'C',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  timezone: 'UTC',
  ...settings,
});

/**
 * A shell in front starts a watcher, then becomes the server. The watcher stops the server when the pipe to this
 * process breaks, which `kill -9` causes too. The server has its own session: Ctrl-C does not reach it, and it ends
 * last, when told to.
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

/** False if the server ended before it accepted connections. */
async function isReady(server: ChildProcess, data: string, deadline: number): Promise<boolean> {
  while (server.exitCode === null && server.signalCode === null) {
    const status = await readStatus(data);
    if (status?.pid === server.pid && status?.state === 'ready') return true;
    if (Date.now() > deadline) server.kill('SIGQUIT');
    await delay(pollMs);
  }
  return false;
}

/** The server's own status file: its process id in the first line, its state in the eighth. */
async function readStatus(data: string): Promise<{ pid: number; state: string } | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Number(lines[0]);
  return pid > 0 ? { pid, state: lines[7]?.trim() ?? '' } : undefined;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended in between.
  }
}
