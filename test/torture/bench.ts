import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres, migrate } from '@app/database';
import { Client } from 'pg';
import { makeModelsFolder } from '../support/quick-model';
import { shareGraphs } from '../support/shared-graphs';
import type { Size } from './row';
import { root } from './service-process';
import { Site } from './site';

const template = 'template_torture';
/** Only the processes are killed here, never the machine; rows that kill PostgreSQL run one of their own. */
const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '400' };

/** One PostgreSQL for all rows; each site gets a database, a data folder and processes of its own. */
export class Bench {
  private constructor(
    private readonly folder: string,
    private readonly postgres: EmbeddedPostgres,
    private readonly size: Size,
    private readonly modelsDir: string,
  ) {}

  /** The long form draws with the bundled model, the short form with one whose pictures take a tenth of the time. */
  static async start(size: Size): Promise<Bench> {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-torture-'));
    // Otherwise closed to the unprivileged user that PostgreSQL runs as when this process is root's.
    chmodSync(folder, 0o711);
    const postgres = await EmbeddedPostgres.start(folder, { settings });
    const modelsDir = size === 'long' ? join(root, 'models') : join(folder, 'models');
    if (size === 'short') {
      makeModelsFolder(modelsDir);
      mkdirSync(join(folder, 'graphs'));
    }
    const bench = new Bench(folder, postgres, size, modelsDir);
    await bench.administrate(`CREATE DATABASE ${template}`);
    await migrate(bench.urlOf(template));
    return bench;
  }

  /** A place for one row. */
  async site(name: string): Promise<Site> {
    const dataDir = mkdtempSync(join(this.folder, `${name}-`));
    chmodSync(dataDir, 0o711);
    // Otherwise the first worker of each site would optimise the model anew.
    if (this.size === 'short') shareGraphs(join(dataDir, 'cache'), join(this.folder, 'graphs'));
    const database = `row_${randomBytes(6).toString('hex')}`;
    await this.administrate(`CREATE DATABASE ${database} TEMPLATE ${template} STRATEGY FILE_COPY`);
    const { size, modelsDir } = this;
    const drop = () => this.administrate(`DROP DATABASE ${database} WITH (FORCE)`);
    return Site.open({ dataDir, modelsDir, size }, this.urlOf(database), drop);
  }

  async close(): Promise<void> {
    await this.postgres.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private urlOf(database: string): string {
    const address = new URL(this.postgres.url);
    address.pathname = database;
    return address.href;
  }

  private async administrate(statement: string): Promise<void> {
    const client = new Client({ connectionString: this.postgres.url });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  }
}
