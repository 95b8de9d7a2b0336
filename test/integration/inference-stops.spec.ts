import type { Task } from '@app/domain';
import { progressChannel, stopChannel } from '@app/tasks';
import type { INestApplicationContext } from '@nestjs/common';
import { Client } from 'pg';
import { createInference } from '../../apps/inference/src/create-inference';
import { itOnce } from '../support/back-ends';
import type { InferenceBench } from '../support/inference';
import { createInferenceBench, threadFile } from '../support/inference';
import { until } from '../support/until';

interface Step {
  id: string;
  attempt: number;
  step: number;
  total: number;
}

describe('the inference worker, told to stop,', () => {
  let bench: InferenceBench;
  let worker: INestApplicationContext;
  let listener: Client;
  const steps: Step[] = [];

  beforeAll(async () => {
    bench = await createInferenceBench();
    worker = await createInference({ ...bench, threadFile });
    listener = new Client({ connectionString: bench.databaseUrl });
    await listener.connect();
    listener.on('notification', ({ payload }) => steps.push(JSON.parse(payload ?? '') as Step));
    await listener.query(`LISTEN ${progressChannel}`);
  });

  afterAll(async () => {
    await worker.close();
    await listener.end();
    await bench.close();
  });

  /** A task that takes far longer than the test's action on it. */
  const long = { steps: 50, numImages: 8 };
  const stepOf = (task: Task, step = 1, attempt = 1): Promise<Step> =>
    until(
      async () => steps.find((told) => told.id === task.id && told.attempt === attempt && told.step >= step),
      `step ${step} is told`,
    );
  const said = (task: Task, msg: RegExp): Promise<object> =>
    until(async () => bench.logged.find((line) => line.taskId === task.id && msg.test(line.msg)), `${msg} is logged`);
  const filesOf = ({ id }: Task): Promise<string[]> => bench.backEnds.storage.contents(id);

  it('stops long before its end when the task is canceled, and leaves no file', async () => {
    const task = await bench.addTask(long);
    await stepOf(task, 3);
    await bench.tasks.cancel(task.id);
    await said(task, /given up/);
    expect(await bench.taskOf(task.id)).toMatchObject({ status: 'canceled', images: [] });
    const last = steps.filter(({ id }) => id === task.id).at(-1)!;
    expect(last.step).toBeLessThan(last.total / 2);
    expect(await filesOf(task)).toEqual([]);
  });

  it('stops when the task is deleted', async () => {
    const task = await bench.addTask(long);
    await stepOf(task);
    await bench.tasks.remove(task.id);
    await said(task, /given up/);
    expect(await filesOf(task)).toEqual([]);
  });

  itOnce('discards its pictures when another worker has taken the task', async () => {
    const task = await bench.addTask(long);
    await stepOf(task);
    await bench.dataSource.query('UPDATE tasks SET attempt = attempt + 1, heartbeat_at = now() WHERE id = $1', [
      task.id,
    ]);
    await said(task, /given up/);
    expect(await bench.taskOf(task.id)).toMatchObject({ status: 'processing', attempt: 2, images: [] });
    expect(await filesOf(task)).toEqual([]);
  });

  itOnce('receives cancellations again after its connection dropped', async () => {
    await bench.dataSource.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'darkroom-listen'`,
    );
    await until(
      async () =>
        (
          await bench.dataSource.query<unknown[]>(
            `SELECT 1 FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'darkroom-listen' AND query = 'LISTEN ${stopChannel}'`,
          )
        ).length > 0,
      'the worker listens again',
    );
    const task = await bench.addTask(long);
    await stepOf(task);
    await bench.tasks.cancel(task.id);
    await said(task, /given up/);
    expect(await filesOf(task)).toEqual([]);
  });
});
