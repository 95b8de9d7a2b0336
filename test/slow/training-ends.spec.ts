import { Task } from '@app/domain';
import { ofSuite } from '../support/of-suite';
import { type PictureServer, startPictureServer } from '../support/picture-server';
import { trainableModels } from '../support/quick-model';
import { startTestService } from '../support/service';
import type { ServiceProcess } from '../support/service-process';
import { robotPictures, Trainer, trainingProcesses } from '../support/trainings';
import { until } from '../support/until';

describe('A training that ends before it has begun', () => {
  const env = {
    MODELS_DIR: '',
    MODEL_FALLBACK: 'off',
    MAX_TRAININGS_PER_KEY: '1',
    PICTURES_ALLOW_PRIVATE: 'on',
  };
  const service = ofSuite(() => startTestService({ env: { ...env, MODELS_DIR: trainableModels() }, workers: 0 }));
  let worker: ServiceProcess;
  let elsewhere: PictureServer;
  let slow: string[];
  let caller: Trainer;

  beforeAll(async () => {
    worker = await service.startWorker();
    // The last picture never comes.
    elsewhere = await startPictureServer(
      Object.fromEntries(robotPictures().map((file, i) => [`/${i}.png`, i < 3 ? file : () => undefined])),
    );
    slow = robotPictures().map((_, i) => `${elsewhere.url}/${i}.png`);
  });

  afterAll(() => elsewhere.close());
  beforeEach(async () => {
    caller = new Trainer(service, await service.createKey());
    elsewhere.asked.length = 0;
  });

  const fetching = async (): Promise<string> => {
    const { id } = await caller.train({ images_url: slow });
    await until(async () => elsewhere.asked.includes('/3.png'), 'it fetches the last picture');
    return id;
  };

  it('is given back at once, and not counted as a failure, when its worker has to end while it fetches', async () => {
    const id = await fetching();
    const askedAt = performance.now();
    expect(await worker.end('SIGTERM')).toBe('SIGTERM');
    // The patience for a step is longer.
    expect(performance.now() - askedAt).toBeLessThan(5_000);
    const task = await service.dataSource.manager.findOneByOrFail(Task, { id });
    expect(task).toMatchObject({ status: 'queued', deaths: 0, failures: 0 });
    await caller.post(id, 'cancel');
    worker = await service.startWorker();
  });

  it('fails alone when its model is gone: the worker lives on', async () => {
    const first = await fetching();
    const { id } = await caller.train({ images_url: slow });
    // It waits for the first one, and its model is removed meanwhile.
    const change = { model: 'gone', createdAt: new Date(Date.now() - 60_000) };
    await service.dataSource.manager.update(Task, { id }, change);
    await caller.post(first, 'cancel');
    expect((await caller.has(id, 'failed')).error_message).toBe('The model gone is not installed.');
    await until(async () => trainingProcesses(worker.pid).length === 0, 'its process is gone');
    // The next one is begun by the same worker.
    await caller.post(await fetching(), 'cancel');
    expect(worker.isRunning).toBe(true);
  });
});
