import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../../support/free-port';
import type { ServiceProcess } from '../../../support/service-process';
import { type RunningApi, type Site, untilOk } from '../../site';

const newer = '.';

/** Two apis behind nginx and two workers, each of which may be replaced by another version's. */
export class Fleet {
  private readonly apis: RunningApi[] = [];
  private readonly workers: ServiceProcess[] = [];
  /** How each process that was replaced has ended, if not in order. */
  readonly badEnds: string[] = [];

  private constructor(
    private readonly site: Site,
    /** nginx. */
    readonly url: string,
    private readonly ports: readonly number[],
  ) {}

  /** @param checkout the version that all of it has */
  static async start(site: Site, checkout: string): Promise<Fleet> {
    const [port, ...ports] = [await freePort(), await freePort(), await freePort()];
    const fleet = new Fleet(site, `http://127.0.0.1:${port}`, ports);
    await fleet.startWorkers(checkout);
    for (const index of [0, 1]) await fleet.replaceApi(index, checkout);
    await fleet.startBalancer(port);
    return fleet;
  }

  /** The address of one api. */
  urlOf(index: number): string {
    return this.apis[index].url;
  }

  async replaceApi(index: number, checkout = newer): Promise<void> {
    await this.end(this.apis[index]?.process);
    const env = { PUBLIC_URL: this.url };
    this.apis[index] = await this.site.startApi({ port: this.ports[index], env, checkout });
  }

  async replaceWorker(index: number, checkout = newer): Promise<void> {
    await this.end(this.workers[index]);
    this.workers[index] = await this.site.startWorker({ env: { PUBLIC_URL: this.url }, checkout });
  }

  async stopWorkers(): Promise<void> {
    await Promise.all(this.workers.map((worker) => this.end(worker)));
  }

  async startWorkers(checkout: string): Promise<void> {
    await Promise.all([0, 1].map((index) => this.replaceWorker(index, checkout)));
  }

  /** What the processes of this moment have logged as errors. */
  errors(): string[] {
    return [...this.apis.map(({ process }) => process), ...this.workers].flatMap(({ name, output }) =>
      output
        .split('\n')
        .filter((line) => line.startsWith('{"level":50') || line.startsWith('{"level":60'))
        .map((line) => `${name}: ${line.slice(0, 400)}`),
    );
  }

  private async end(process?: ServiceProcess): Promise<void> {
    if (!process?.isRunning) return;
    const how = await process.end('SIGTERM');
    if (how !== 'SIGTERM' && how !== 0) this.badEnds.push(`${process.name} ended with ${how}`);
  }

  private async startBalancer(port: number): Promise<void> {
    const folder = `${this.site.dataDir}-nginx`;
    mkdirSync(folder);
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`);
    const servers = this.ports.map((each) => `server 127.0.0.1:${each} max_fails=0;`);
    writeFileSync(
      join(folder, 'nginx.conf'),
      `daemon off; worker_processes 1; pid nginx.pid; error_log stderr;
      ${process.getuid?.() === 0 ? 'user root;' : ''}
      events {}
      http {
        access_log off; ${temporary.join(' ')}
        upstream apis { ${servers.join(' ')} }
        server {
          listen 127.0.0.1:${port}; client_max_body_size 100m;
          location / { proxy_pass http://apis; proxy_set_header Host $http_host; }
        }
      }`,
    );
    const nginx = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], { stdio: 'ignore' });
    this.site.finally(async () => {
      nginx.kill();
      await once(nginx, 'exit');
    });
    await untilOk(`${this.url}/health/ready`, () => nginx.exitCode === null);
  }
}

/** Runs the migrations of a version. @returns milliseconds */
export async function migrateWith(site: Site, checkout = newer): Promise<number> {
  const startedAt = Date.now();
  await promisify(execFile)(process.execPath, [join(checkout, 'dist/apps/cli/src/migrate.js')], {
    env: { PATH: process.env.PATH, DATABASE_URL: site.databaseUrl, DATA_DIR: site.dataDir },
  });
  return Date.now() - startedAt;
}

/** Lets the load go on for a while. */
export const underLoad = (ms: number): Promise<void> => delay(ms);
