import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, isListening } from './free-port';
import { until } from './until';

const programs = ['pgbouncer', '/usr/sbin/pgbouncer'];

/** The installed PgBouncer, if there is one. */
export const pgBouncer = programs.find((program) => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
});

/**
 * PgBouncer before a database. It refuses root, so root runs it as a user of every system, in the group that may enter
 * the run's folder.
 */
export async function startPgBouncer(
  databaseUrl: string,
  mode: 'session' | 'transaction' | 'statement',
  settings = '',
): Promise<{ url: string; stop(): Promise<void> }> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-pgbouncer-'));
  chmodSync(folder, 0o755);
  const listenPort = await freePort();
  const ini = join(folder, 'pgbouncer.ini');
  writeFileSync(join(folder, 'users.txt'), `"${username}" "${password}"\n`);
  writeFileSync(
    ini,
    `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'users.txt')}
pool_mode = ${mode}
${settings}
`,
  );
  const asUser = process.getuid?.() === 0 ? { uid: 65_534, gid: statSync(tmpdir()).gid || 65_534 } : {};
  const child = spawn(pgBouncer!, [ini], { stdio: 'ignore', ...asUser });
  await until(() => isListening(listenPort), 'PgBouncer listens');
  return {
    url: `postgres://${username}:${password}@127.0.0.1:${listenPort}${pathname}`,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
