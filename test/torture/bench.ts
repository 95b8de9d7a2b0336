import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { EmbeddedPostgres, migrate } from '@app/database';
import { Client } from 'pg';
import { makeModelsFolder } from '../support/quick-model';
import type { Figures, Outcome, Row, Size } from './row';
import { Site } from './site';

const template = 'template_torture';
/** Only the processes are killed here, never the machine; rows that kill PostgreSQL run one of their own. */
const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '400' };

/** One row of the report. */
export interface Report extends Outcome {
  name: string;
  title: string;
  seconds: number;
  /** Last words of the processes, of a row that did not pass. */
  log?: string;
}

const nothing: Figures = { acknowledged: 0, terminated: 0, duplicates: 0, lost: 0, leaked: 0, serverErrors: 0 };

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
    const modelsDir = size === 'long' ? resolve('models') : join(folder, 'models');
    if (size === 'short') makeModelsFolder(modelsDir);
    const bench = new Bench(folder, postgres, size, modelsDir);
    await bench.administrate(`CREATE DATABASE ${template}`);
    await migrate(bench.urlOf(template));
    return bench;
  }

  /** Runs rows, on some sites at once, and first those that share one; each promise is kept when its row is over. */
  run(rows: readonly Row[], atOnce: number): Promise<Report>[] {
    const siteOf = (row: Row): string | undefined => (this.size === 'short' ? row.sharedSite : undefined);
    const names = new Set(rows.flatMap((row) => siteOf(row) ?? []));
    const waiting = [
      ...[...names].map((name) => rows.filter((row) => siteOf(row) === name)),
      ...rows.filter((row) => !siteOf(row)).map((row) => [row]),
    ];
    const keep = new Map<Row, (report: Report | Promise<never>) => void>();
    const reports = rows.map((row) => new Promise<Report>((resolved) => keep.set(row, resolved)));
    const work = async (): Promise<void> => {
      for (let group = waiting.shift(); group; group = waiting.shift())
        await this.runOnOneSite(group, (row, report) => keep.get(row)!(report)).catch((error: Error) =>
          group.forEach((row) => keep.get(row)!(Promise.reject(error))),
        );
    };
    for (let i = 0; i < atOnce; i++) void work();
    return reports;
  }

  async close(): Promise<void> {
    await this.postgres.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs rows one after another; after a row with problems the next one gets a new site. */
  private async runOnOneSite(rows: readonly Row[], onReport: (row: Row, report: Report) => void): Promise<void> {
    let site: Site | undefined;
    for (const row of rows) {
      if (site) await site.clear();
      else site = await this.openSite(row.name);
      site.isLastRow = row === rows.at(-1);
      const report = await this.runRow(site, row);
      if (site.isLastRow || report.problems.length > 0) {
        await site.close();
        site = undefined;
      } else await site.endRow();
      onReport(row, report);
    }
  }

  /** A row that breaks off is a problem of the row. */
  private async runRow(site: Site, row: Row): Promise<Report> {
    const startedAt = performance.now();
    const outcome = await row
      .run(site, this.size)
      .catch((error: Error) => ({ figures: nothing, problems: [error.stack ?? String(error)], notes: {} }));
    const seconds = (performance.now() - startedAt) / 1_000;
    const log = outcome.problems.length > 0 ? { log: site.lastWords() } : {};
    return { name: row.name, title: row.title, ...outcome, seconds, ...log };
  }

  private async openSite(name: string): Promise<Site> {
    const dataDir = mkdtempSync(join(this.folder, `${name}-`));
    chmodSync(dataDir, 0o711);
    const database = `row_${randomBytes(6).toString('hex')}`;
    await this.administrate(`CREATE DATABASE ${database} TEMPLATE ${template} STRATEGY FILE_COPY`);
    return Site.open(dataDir, this.modelsDir, this.size, this.urlOf(database));
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
