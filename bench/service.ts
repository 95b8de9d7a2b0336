import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { createDataSource, EmbeddedPostgres, migrate } from '@app/database';
import { ApiKey, newApiKey } from '@app/domain';

/** A log line of a process of the service. */
export interface LogLine {
  level: number;
  msg: string;
  url?: string;
}

/** An embedded PostgreSQL, and processes beside it. */
export interface Site {
  databaseUrl: string;
  /** Of API keys. */
  tokens: string[];
  /** They end with the site. */
  children: ChildProcess[];
  /**
   * Resolves with the line that says that the api is ready. Its errors are shown.
   * @throws Error if it ends before
   */
  startApi: (env: Record<string, string>) => Promise<LogLine>;
}

/** Runs something on a site of its own, with so many API keys. */
export async function onSite<T>(keyCount: number, run: (site: Site) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
  // If this runs as root, PostgreSQL's own user must be able to enter the folder.
  chmodSync(folder, 0o711);
  const postgres = await EmbeddedPostgres.start(folder);
  const databaseUrl = postgres.url;
  const children: ChildProcess[] = [];
  const startApi: Site['startApi'] = (env) => {
    const shared = { PATH: process.env.PATH, DATABASE_URL: databaseUrl, DATA_DIR: join(folder, 'data') };
    const file = resolve(__dirname, '..', 'apps', 'api', 'src', 'main.js');
    const child = spawn(process.execPath, [file], {
      env: { ...shared, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    return new Promise((ready, reject) => {
      child.once('exit', (code) => reject(new Error(`The api ended with ${code}.`)));
      createInterface({ input: child.stdout }).on('line', (text) => {
        const line = JSON.parse(text) as LogLine;
        if (line.level >= 50) process.stderr.write(`${text}\n`);
        if (line.msg === 'api is listening') ready(line);
      });
    });
  };
  try {
    await migrate(databaseUrl);
    const tokens = await createKeys(databaseUrl, keyCount);
    return await run({ databaseUrl, tokens, children, startApi });
  } finally {
    for (const child of children) child.kill('SIGTERM');
    await Promise.all(children.map(async (child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function createKeys(databaseUrl: string, count: number): Promise<string[]> {
  const dataSource = await createDataSource(databaseUrl, { poolSize: 1 }).initialize();
  try {
    const made = Array.from({ length: count }, (_, i) => newApiKey(`bench ${i}`, ['read', 'write']));
    await dataSource.getRepository(ApiKey).insert(made.map(({ apiKey }) => apiKey));
    return made.map(({ token }) => token);
  } finally {
    await dataSource.destroy();
  }
}
