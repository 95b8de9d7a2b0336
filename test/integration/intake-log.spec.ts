import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import { createDataSource, EmbeddedPostgres, migrate } from '@app/database';
import { newIdentifier } from '@app/domain';
import { TaskIntake } from '@app/tasks';
import { openJobBackEnd, Transactions } from '@app/queue';
import { Client } from 'pg';
import { newTask } from '../support/new-task';
import { until } from '../support/until';

it('a failing batch writes no prompt to the log of the embedded server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-intake-log-'));
  chmodSync(folder, 0o711);
  const postgres = await EmbeddedPostgres.start(folder);
  const other = new Client({ connectionString: postgres.url });
  const errors: unknown[] = [];
  const fail = (error: unknown): void => void errors.push(error);
  try {
    await migrate(postgres.url);
    await other.connect();
    const dataSource = await createDataSource(postgres.url, { poolSize: 2 }).initialize();
    const jobs = openJobBackEnd(loadConfig({ DATA_DIR: folder }), postgres.url, fail);
    const intake = new TaskIntake(postgres.url, new Transactions(dataSource, jobs, fail), jobs, fail);
    const ownerId = newIdentifier();
    await other.query(`SELECT pg_advisory_lock(hashtextextended('admission ${ownerId}', 0))`);
    const written = intake.insert({ ownerId, maxQueued: 10, tasks: [newTask(ownerId, { prompt: 'a secret star' })] });
    const log = (): string => readFileSync(join(folder, 'logs', 'postgres.log'), 'utf8');
    await until(async () => log().includes('canceling statement due to lock timeout'), 'the batch gives up');
    await other.query('SELECT pg_advisory_unlock_all()');
    expect(await written).toMatchObject({ admitted: true });
    expect(log()).not.toContain('a secret star');
    // A closed pool does not wait for the server to end its connections, which the end of the server may do first.
    expect(errors).toEqual([]);
    await intake.close();
    await jobs.close();
    await dataSource.destroy();
  } finally {
    await other.end();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
