import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres, migrate } from '@app/database';
import { Client } from 'pg';
import { Site } from './site';

const template = 'template_torture';
/** Only the processes are killed here, never the machine; rows that kill PostgreSQL run one of their own. */
const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '400' };

/** One PostgreSQL for all rows; each gets a database, a data folder and processes of its own. */
export class Bench {
  private constructor(
    private readonly folder: string,
    private readonly postgres: EmbeddedPostgres,
  ) {}

  static async start(): Promise<Bench> {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-torture-'));
    // Otherwise closed to the unprivileged user that PostgreSQL runs as when this process is root's.
    chmodSync(folder, 0o711);
    const postgres = await EmbeddedPostgres.start(folder, { settings });
    const bench = new Bench(folder, postgres);
    await bench.administrate(`CREATE DATABASE ${template}`);
    await migrate(bench.urlOf(template));
    return bench;
  }

  /** A place for one row. */
  async site(name: string): Promise<Site> {
    const dataDir = mkdtempSync(join(this.folder, `${name}-`));
    chmodSync(dataDir, 0o711);
    const database = `row_${randomBytes(6).toString('hex')}`;
    await this.administrate(`CREATE DATABASE ${database} TEMPLATE ${template}`);
    return Site.open(dataDir, this.urlOf(database), () => this.administrate(`DROP DATABASE ${database} WITH (FORCE)`));
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
