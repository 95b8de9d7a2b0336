import { join } from 'node:path';
import type { DrawingTask } from '@app/domain';
import { newIdentifier, Task } from '@app/domain';
import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, faultyThread } from '../support/inference';
import { startTestService } from '../support/service';
import { until } from '../support/until';
import type { DrawingValues } from '../support/drawing-rows';
import { drawingOf } from '../support/drawing-rows';

/** Beside a killer; their owners differ, so that all are drawn at once. */
const neighbours = 5;

describe('a task that ends what draws it', () => {
  it('fails alone, in an engine whose thread it ends', async () => {
    const bench = await createInferenceBench();
    const add = (values: DrawingValues) => bench.addTask({ ownerId: newIdentifier(), steps: 4, ...values });
    const before = [await add({}), await add({}), await add({ prompt: 'a killer' }), await add({}), await add({})];
    const killer = before[2];
    const worker = await createInference({ ...bench, threadFile: faultyThread('killer') });
    try {
      await until(async () => (await bench.taskOf(killer.id)).deaths > 0, 'the thread ended');
      const after = [await add({}), await add({})];
      expect(await bench.terminated(killer.id)).toMatchObject({
        status: 'failed',
        error: 'The picture could not be drawn: the engine broke in 5 tries.',
        attempt: 5,
      });
      for (const { id } of before.filter((task) => task !== killer)) {
        const { status, deaths } = await bench.terminated(id);
        expect([status, deaths <= 1]).toEqual(['succeeded', true]);
      }
      // The killer was drawn alone by then.
      for (const { id } of after)
        expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded', attempt: 1, deaths: 0 });
      const suspected = await bench.dataSource.manager.countBy(Task, { deaths: 1 });
      expect(suspected).toBeGreaterThan(0);
    } finally {
      await worker.close();
      await bench.close();
    }
  });

  it('fails alone, in a worker whose process it ends', async () => {
    // Pictures of this model are quick to draw, and none is looked at here.
    const env = { MODELS_DIR: process.env.TEST_MODELS_DIR! };
    const service = await startTestService({ env, workers: 0 });
    try {
      const { manager } = service.dataSource;
      const add = async (prompt: string): Promise<string> => {
        const key = await service.createKey();
        const body = { prompt, steps: 4, model: 'shapes' };
        const reply = await service.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body });
        expect(reply.status).toBe(201);
        return reply.body.id;
      };
      const ids = [await add('a star'), await add('a killer')];
      const killer = ids[1];
      while (ids.length <= neighbours) ids.push(await add('a square'));
      const taskOf = (id: string): Promise<DrawingTask> => drawingOf(manager, id);
      const isOver = async (): Promise<boolean> => (await taskOf(killer)).status === 'failed';
      const NODE_OPTIONS = `--require ${join(__dirname, '..', 'support', 'killer-process.cjs')}`;
      // As if it had ended three workers before.
      await manager.update(Task, { id: killer }, { deaths: 3, attempt: 3 });
      let crashes = 0;
      for (;;) {
        const worker = await service.startWorker({ NODE_OPTIONS });
        const ended = worker.ended.then(() => true);
        const isEnded = await Promise.race([ended, until(isOver, 'the killer is failed').then(() => false)]);
        if (!isEnded) break;
        crashes++;
        // As if the workers had been silent for long.
        await manager.query(
          `UPDATE tasks SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE status = 'processing'`,
        );
        ids.push(await add('a circle'));
      }
      expect(crashes).toBe(2);
      expect(await taskOf(killer)).toMatchObject({
        error: 'The picture could not be drawn: its worker ended unexpectedly in 5 tries.',
        deaths: 5,
      });
      for (const id of ids.filter((each) => each !== killer)) {
        const task = await until(async () => {
          const found = await taskOf(id);
          return found.completedAt !== null && found;
        }, `task ${id} has terminated`);
        expect([task.status, task.deaths <= 1]).toEqual(['succeeded', true]);
      }
    } finally {
      await service.close();
    }
  });
});
