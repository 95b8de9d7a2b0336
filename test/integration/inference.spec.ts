import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sizeOfPicture } from '@app/diffusion';
import { type Drawing, type DrawingTask, Finetune, newIdentifier, type Task } from '@app/domain';
import { heartbeatTimeoutMs, progressChannel, stopChannel, undrawableAfterMs } from '@app/tasks';
import type { INestApplicationContext } from '@nestjs/common';
import { Client } from 'pg';
import sharp from 'sharp';
import { EngineSlots } from '../../apps/inference/src/drawing/engine-slots';
import { PictureStore } from '../../apps/inference/src/pictures/picture-store';
import { itOnce } from '../support/back-ends';
import { loadGoldenTable } from '../support/golden';
import { createInferenceBench } from '../support/inference';
import { psnr } from '../support/psnr';
import { bytesOf } from '../support/stored-objects';
import { until } from '../support/until';
import { startWorker } from '../support/worker';
import { ofSuite, ofTest } from '../support/of-suite';

interface Step {
  id: string;
  attempt: number;
  step: number;
  total: number;
}

describe('the inference worker', () => {
  const bench = ofSuite(createInferenceBench);
  let worker: INestApplicationContext;
  const heard = ofSuite(async () => {
    const steps: Step[] = [];
    const listener = new Client({ connectionString: bench.databaseUrl });
    await listener.connect();
    listener.on('notification', ({ payload }) => steps.push(JSON.parse(payload ?? '') as Step));
    await listener.query(`LISTEN ${progressChannel}`);
    return { steps, close: () => listener.end() };
  });

  beforeAll(async () => {
    worker = await startWorker(bench);
  });

  const filesOf = ({ id }: DrawingTask): Promise<string[]> => bench.backEnds.storage.contents(id);

  async function addFinetune(weightsKey: string, content: Buffer): Promise<{ finetuneId: string; ownerId: string }> {
    const [id, ownerId] = [newIdentifier(), newIdentifier()];
    await bench.storage.write(weightsKey, content);
    await bench.dataSource.manager.insert(Finetune, {
      id,
      ownerId,
      name: 'robot',
      token: 'zwx',
      model: 'shapes',
      status: 'ready',
      weightsKind: 'lora',
      weightsHash: createHash('sha256').update(content).digest('hex'),
      weightsKey,
      createdAt: new Date(),
    });
    return { finetuneId: id, ownerId };
  }

  it('draws a queued task and stores its picture', async () => {
    const { id } = await bench.addTask();
    const task = await bench.terminated(id);
    expect(task).toMatchObject({ status: 'succeeded', attempt: 1, error: null, promptChunks: 1, upscaler: null });
    expect(task.servedBy).toMatch(/^shapes@[0-9a-f]{12}$/);
    expect(task.computeSeconds).toBeGreaterThan(0);
    expect(task.images).toEqual([
      expect.objectContaining({
        index: 0,
        storageKey: `${id}/1/0.png`,
        contentType: 'image/png',
        width: 256,
        height: 256,
      }),
    ]);
    const file = await bytesOf(bench.storage, task.images[0].storageKey);
    const { data, info } = await sharp(file).raw().toBuffer({ resolveWithObject: true });
    expect(info).toMatchObject({ width: 256, height: 256, channels: 3 });
    expect(new Set(data).size).toBeGreaterThan(16);
    expect(await filesOf(task)).toEqual([`${id}/1/0.png`, `${id}/1/0.thumbnail.webp`]);
    // Steps are published asynchronously, and may arrive after the end.
    const last = await until(
      async () => heard.steps.find((step) => step.id === id && step.step === 3),
      'the last step is heard',
    );
    expect(last).toEqual({ id, attempt: 1, step: 3, total: 3 });
  });

  itOnce.each(['pndm', 'heun'])(
    'reports as many steps as requested, although %s calls the model more often',
    async (scheduler) => {
      const { id } = await bench.addTask({ scheduler, steps: 4 });
      await bench.terminated(id);
      await until(async () => heard.steps.some((step) => step.id === id && step.step === 4), 'the last step is heard');
      for (const step of heard.steps.filter((told) => told.id === id)) {
        expect(step.total).toBe(4);
        expect(step.step).toBeLessThanOrEqual(4);
      }
    },
  );

  itOnce('draws every picture of a task in its shape and format, and counts the usage', async () => {
    const landscape = { aspectRatio: 'landscape', ...sizeOfPicture(512, 'landscape') } as const;
    const { id } = await bench.addTask({ numImages: 3, ...landscape, outputFormat: 'webp', steps: 2 });
    const { images, ownerId } = await bench.terminated(id);
    expect(images.map(({ storageKey }) => storageKey).sort()).toEqual([0, 1, 2].map((i) => `${id}/1/${i}.webp`));
    for (const { storageKey } of images)
      expect(await sharp(await bytesOf(bench.storage, storageKey)).metadata()).toMatchObject({
        format: 'webp',
        width: 768,
        height: 512,
      });
    const usage: unknown = await bench.dataSource.query(
      'SELECT images::int, steps::int FROM daily_usage WHERE owner_id = $1',
      [ownerId],
    );
    expect(usage).toEqual([{ images: 3, steps: 6 }]);
  });

  itOnce('draws sd1.5 with the bundled model as a stand-in, and records that', async () => {
    const { id } = await bench.addTask({ model: 'sd1.5', steps: 2 });
    expect((await bench.terminated(id)).servedBy).toMatch(/^shapes@/);
  });

  itOnce('fails a task whose model no worker has had for a while, in one plain sentence', async () => {
    const { id } = await bench.addTask({ model: 'sdxl', createdAt: new Date(Date.now() - undrawableAfterMs) });
    expect(await bench.terminated(id)).toMatchObject({
      status: 'failed',
      error: 'The model sdxl is not installed.',
      images: [],
    });
  });

  it('leaves a task for which it has no free place to another worker', async () => {
    const slots = worker.get(EngineSlots);
    const taken: ReturnType<typeof slots.take>[] = [];
    // A task that has terminated a moment ago gives its place back soon.
    await until(async () => {
      const slot = slots.take();
      if (slot) taken.push(slot);
      return taken.length === slots.count;
    }, 'every slot is taken');
    const { id } = await bench.addTask({ steps: 1 });
    const other = await startWorker(bench);
    expect((await bench.terminated(id)).status).toBe('succeeded');
    for (const slot of taken) slot?.giveBack();
    await other.close();
  });

  itOnce(
    'draws for other owners while the pictures of two are being stored, however many tasks these have',
    async () => {
      const store = worker.get(PictureStore);
      const save = store.save.bind(store);
      const owners = [newIdentifier(), newIdentifier()];
      let goOn: () => void = () => undefined;
      const held = new Promise<void>((resolve) => (goOn = resolve));
      const spy = jest.spyOn(store, 'save').mockImplementation(async (task, ...rest) => {
        if (owners.includes(task.ownerId)) await held;
        return save(task, ...rest);
      });
      const ids: string[][] = [];
      const countOf = async (owner: number, wanted: string) =>
        (await Promise.all(ids[owner].map((id) => bench.taskOf(id)))).filter(({ status }) => status === wanted).length;
      // Twelve places: one owner has two thirds of them, and the next as many as leave two.
      for (const [owner, most] of [8, 2].entries()) {
        ids.push(Array.from({ length: 10 }, newIdentifier));
        for (const id of ids[owner]) await bench.addTask({ id, ownerId: owners[owner], steps: 1 });
        await until(async () => (await countOf(owner, 'processing')) === most, 'the owner has the places that it may');
      }
      const other = await bench.addTask({ steps: 1 });
      expect((await bench.terminated(other.id)).status).toBe('succeeded');
      expect([await countOf(0, 'processing'), await countOf(1, 'processing')]).toEqual([8, 2]);
      goOn();
      for (const id of ids.flat()) expect((await bench.terminated(id)).status).toBe('succeeded');
      spy.mockRestore();
    },
  );

  itOnce('gives up a task that its workers did not survive', async () => {
    const lost = (deaths: number): Partial<DrawingTask> => {
      const silenceMs = 2 * heartbeatTimeoutMs * 2 ** (deaths - 1);
      return {
        status: 'processing',
        attempt: 5,
        deaths,
        drawnAlone: true,
        heartbeatAt: new Date(Date.now() - silenceMs),
      };
    };
    const { id: deadly } = await bench.addTask(lost(4));
    expect(await bench.terminated(deadly)).toMatchObject({
      status: 'failed',
      error: 'The picture could not be drawn: its worker ended unexpectedly in 5 tries.',
      deaths: 5,
      images: [],
    });
    const { id: unlucky } = await bench.addTask(lost(3));
    expect(await bench.terminated(unlucky)).toMatchObject({ status: 'succeeded', attempt: 6, deaths: 4 });
  });

  itOnce('fails a task with an unknown scheduler without retrying', async () => {
    const { id } = await bench.addTask({ scheduler: 'quick' });
    const task = await bench.terminated(id);
    expect(task).toMatchObject({ status: 'failed', attempt: 1 });
    expect(task.error).toContain('"quick"');
  });

  it('draws with the weights of a Fine-Tune, and records that', async () => {
    const [golden] =
      loadGoldenTable<Pick<Drawing, 'prompt' | 'cfg' | 'steps' | 'seed' | 'scheduler'>[]>('lora/pipeline');
    const lora = await readFile(join(__dirname, '../golden/models/lora/zwx-robot-kohya.safetensors'));
    const finetune = await addFinetune('weights/robot.safetensors', lora);
    const { id } = await bench.addTask({
      ...finetune,
      model: 'shapes-bundled',
      prompt: golden.prompt,
      cfg: golden.cfg,
      steps: golden.steps,
      seed: golden.seed,
      scheduler: golden.scheduler,
      ...{ width: 512, height: 512 },
    });
    const task = await bench.terminated(id);
    const hash = createHash('sha256').update(lora).digest('hex');
    expect(task).toMatchObject({ status: 'succeeded', error: null });
    expect(task.servedBy).toMatch(new RegExp(`^shapes-bundled@[0-9a-f]{12}\\+${hash.slice(0, 12)}$`));
    const read = async (file: string | Buffer) => {
      const { data, info } = await sharp(file).removeAlpha().raw().toBuffer({ resolveWithObject: true });
      return { data, width: info.width, height: info.height };
    };
    const drawn = await read(await bytesOf(bench.storage, task.images[0].storageKey));
    expect(psnr(drawn, await read(join(__dirname, '../golden/data/lora/0.png')))).toBeGreaterThanOrEqual(45);
  });

  itOnce('fails a task whose Fine-Tune has invalid weights', async () => {
    const finetune = await addFinetune('weights/broken.safetensors', Buffer.from('not a safetensors file'));
    const { id } = await bench.addTask(finetune);
    const task = await bench.terminated(id);
    expect(task).toMatchObject({ status: 'failed', attempt: 1 });
    expect(task.error).toMatch(/^The weights of the Fine-Tune cannot be used: /);
    expect(task.error).not.toContain(bench.config.dataDir);
  });

  it('leaves a task alone that another worker holds, and claims it once that worker is silent', async () => {
    const id = newIdentifier();
    const heartbeatAt = new Date(Date.now() - 7_000);
    const task = await bench.addTask({ id, status: 'processing', attempt: 1, heartbeatAt });
    const drawn = await bench.terminated(task.id);
    expect(drawn).toMatchObject({ status: 'succeeded', attempt: 2 });
    expect(drawn.completedAt!.getTime() - task.heartbeatAt!.getTime()).toBeGreaterThan(10_000);
  });

  describe('told to stop', () => {
    /** A task that takes far longer than the test's action on it. */
    const long = { steps: 50, numImages: 8 };
    const stepOf = (task: Task, step = 1, attempt = 1): Promise<Step> =>
      until(
        async () => heard.steps.find((told) => told.id === task.id && told.attempt === attempt && told.step >= step),
        `step ${step} is told`,
      );
    /** Usage of its owner, who has no other task. It is written just after the task was given up. */
    const usageOf = ({ ownerId }: Task) =>
      until(async () => {
        const [used] = await bench.dataSource.query<{ images: number; seconds: number }[]>(
          'SELECT images::int, compute_seconds AS seconds FROM daily_usage WHERE owner_id = $1',
          [ownerId],
        );
        return used;
      }, 'what it used is counted');
    const said = (task: Task, msg: RegExp): Promise<object> =>
      until(async () => bench.logged.find((line) => line.taskId === task.id && msg.test(line.msg)), `${msg} is logged`);

    it('stops long before its end when the task is canceled, and leaves no file', async () => {
      const task = await bench.addTask({ ...long, steps: 150 });
      await stepOf(task, 3);
      await bench.tasks.cancel(task.id);
      await said(task, /given up/);
      expect(await bench.taskOf(task.id)).toMatchObject({ status: 'canceled', images: [] });
      const last = heard.steps.filter(({ id }) => id === task.id).at(-1)!;
      expect(last.step).toBeLessThan(last.total / 2);
      expect(await filesOf(task)).toEqual([]);
      const { images, seconds } = await usageOf(task);
      expect([images, seconds > 0]).toEqual([0, true]);
      expect(await bench.taskOf(task.id)).toMatchObject({ computeSeconds: seconds });
    });

    it('stops when the task is deleted', async () => {
      const task = await bench.addTask(long);
      await stepOf(task, 2);
      await bench.tasks.remove(task.id);
      await said(task, /given up/);
      expect(await filesOf(task)).toEqual([]);
      const { images, seconds } = await usageOf(task);
      expect([images, seconds > 0]).toEqual([0, true]);
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
      const counted: unknown[] = await bench.dataSource.query('SELECT FROM daily_usage WHERE owner_id = $1', [
        task.ownerId,
      ]);
      expect(counted).toEqual([]);
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
});

describe('a worker that ends', () => {
  const bench = ofTest(createInferenceBench);

  it('gives back tasks that it cannot finish, for the next worker to draw', async () => {
    const first = await startWorker(bench, { shutdownDeadlineMs: 0 });
    const task = await bench.addTask({ steps: 50, numImages: 8 });
    await until(async () => (await bench.taskOf(task.id)).servedBy !== null, 'drawing has begun');
    await first.close();
    expect(await bench.taskOf(task.id)).toMatchObject({ status: 'queued', attempt: 1, images: [] });
    expect(await bench.backEnds.storage.contents(task.id)).toEqual([]);
    await startWorker(bench);
    expect(await bench.terminated(task.id)).toMatchObject({ status: 'succeeded', attempt: 2 });
  });
});
