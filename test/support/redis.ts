import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port';
import { programFile } from './program-file';
import { until } from './until';

/** Debian's RDB checker is the same program, and acts as a server under that name. */
interface Program {
  file: string;
  argv0: string;
}

function find(): Program | undefined {
  for (const file of ['redis-server', 'valkey-server']) if (programFile(file)) return { file, argv0: file };
  // The tools package starts no service.
  return programFile('redis-check-rdb') ? { file: 'redis-check-rdb', argv0: 'redis-server' } : undefined;
}

const installer = 'apt-get';

/** On Debian, with the rights to install; quiet, with a time limit. */
function install(): void {
  if (process.getuid?.() !== 0 || !programFile(installer)) return;
  const options = ['-y', '-qq', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=45'];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync(installer, ['install', ...options, 'redis-tools'], { stdio: 'ignore', timeout: 60_000, env });
}

function findOrInstall(): Program | undefined {
  if (!find()) install();
  return find();
}

// Many spec files call this; only the first process of a run looks for Redis and installs it.
const program = process.env.TEST_WITHOUT_REDIS ? undefined : findOrInstall();

/** Why there is no Redis; undefined if there is one. */
export const whyNoRedis = program
  ? undefined
  : 'no redis-server or valkey-server is on the PATH, and none could be installed';

/** A real Redis for one spec file, with the settings that the service needs. */
export interface RedisServer {
  url: string;
  /** Deletes everything, like an operator's FLUSHALL. */
  flush(): Promise<void>;
  kill(): Promise<void>;
  /** On the same port, empty. */
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
    // A failed connection has ended; quitting would wait for its timer of two seconds.
    if (redis.status !== 'end') redis.disconnect();
  }
}
