import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port';
import { until } from './until';

/** How a server is run: Debian's checker is the same program, and is a server under that name. */
interface Program {
  file: string;
  argv0: string;
}

const installer = 'apt-get';

const isOnPath = (name: string): boolean => spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined;

function find(): Program | undefined {
  for (const file of ['redis-server', 'valkey-server']) if (isOnPath(file)) return { file, argv0: file };
  // The package of tools brings no service that would be started.
  return isOnPath('redis-check-rdb') ? { file: 'redis-check-rdb', argv0: 'redis-server' } : undefined;
}

/** Debian's package, where this is Debian and we may; quietly, and not for long. */
function install(): void {
  if (process.getuid?.() !== 0 || !isOnPath(installer)) return;
  spawnSync(
    installer,
    ['install', '-y', '-qq', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=45', 'redis-tools'],
    {
      stdio: 'ignore',
      timeout: 60_000,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    },
  );
}

function findOrInstall(): Program | undefined {
  const found = find();
  if (found) return found;
  install();
  return find();
}

// Many spec files ask; only the first process of a run looks for it, and installs it.
const program = process.env.TEST_WITHOUT_REDIS ? undefined : findOrInstall();

/** Why there is no Redis to test with; undefined where there is one. */
export const whyNoRedis = program
  ? undefined
  : 'no redis-server or valkey-server is on the PATH, and none could be installed';

/** A real Redis of one spec file, with the settings that the service asks for. */
export interface RedisServer {
  url: string;
  /** Forgets everything, as an operator's FLUSHALL does. */
  flush(): Promise<void>;
  kill(): Promise<void>;
  /** Starts again on the same port, empty. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Starts Redis on a free port, in a folder of its own. */
export async function startRedis(): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-redis-'));
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    if (!program) throw new Error(whyNoRedis);
    child = spawn(
      program.file,
      ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--maxmemory-policy', 'noeviction'],
      { argv0: program.argv0, cwd: folder, stdio: 'ignore' },
    );
    await until(() => ask(url, (redis) => redis.ping()).then(Boolean, () => false), 'Redis answers');
  };
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  await start();
  return {
    url,
    flush: async () => void (await ask(url, (redis) => redis.flushall())),
    kill,
    start,
    async close() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function ask<T>(url: string, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return await question(redis);
  } finally {
    // A connection that has failed has ended; its timer would run on for two seconds.
    if (redis.status !== 'end') redis.disconnect();
  }
}
