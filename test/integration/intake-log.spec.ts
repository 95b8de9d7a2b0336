import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import { createDataSource, EmbeddedPostgres, migrate } from '@app/database';
import { newIdentifier } from '@app/domain';
import { openQueueConnection, openWakeUps, Transactions } from '@app/queue';
import { StorageQuota, TaskIntake } from '@app/tasks';
import { newTask } from '../support/new-task';
import { until } from '../support/until';

it('a request that the database refuses writes no prompt to the log of the embedded server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-intake-log-'));
  chmodSync(folder, 0o711);
  const postgres = await EmbeddedPostgres.start(folder);
  const fail = (): void => undefined;
  try {
    await migrate(postgres.url);
    const dataSource = await createDataSource(postgres.url, { poolSize: 2 }).initialize();
    const wakeUps = openWakeUps(openQueueConnection(loadConfig({ DATA_DIR: folder }), postgres.url, fail), fail);
    const intake = new TaskIntake(new Transactions(dataSource), wakeUps, new StorageQuota({ storageMbPerKey: 0 }));
    const ownerId = newIdentifier();
    const work = { ownerId, maxQueued: 10, tasks: [newTask(ownerId, { prompt: 'a secret star' })] };
    expect(await intake.insert(work)).toEqual({ accepted: true });
    await expect(intake.insert(work)).rejects.toThrow('duplicate key');
    const log = (): string => readFileSync(join(folder, 'logs', 'postgres.log'), 'utf8');
    await until(async () => log().includes('duplicate key'), 'the server has logged it');
    expect(log()).not.toContain('a secret star');
    await wakeUps.close();
    await dataSource.destroy();
  } finally {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
