import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CONFIG } from '@app/config';
import { type KeyFilter, Task } from '@app/domain';
import { ModelStore } from '@app/model-store';
import { JsonLogger } from '@app/observability';
import type { PictureReader } from '@app/pictures';
import { IMAGE_STORAGE } from '@app/storage';
import { Tasks, Trainings } from '@app/tasks';
import { DataSource } from 'typeorm';
import { FailureService } from '../../apps/inference/src/drawing/failure.service';
import type { ModelResolver } from '../../apps/inference/src/drawing/model-resolver';
import { ProgressPublisher } from '../../apps/inference/src/drawing/progress-publisher';
import type { StopListener } from '../../apps/inference/src/drawing/stop-listener';
import { TaskRunner } from '../../apps/inference/src/drawing/task-runner';
import type { Engines } from '../../apps/inference/src/engine-client/engines';
import { TrainingChild } from '../../apps/inference/src/training/training-child';
import { TrainingPictures } from '../../apps/inference/src/training/training-pictures';
import { TrainingService } from '../../apps/inference/src/training/training.service';
import { TrainingStore } from '../../apps/inference/src/training/training-store';
import { startTestApi } from '../support/api';
import { ofSuite } from '../support/of-suite';
import { smallModels } from '../support/quick-model';

TrainingChild.processFile = resolve('dist', 'apps', 'inference', 'src', 'training', 'training-process.js');

const black = { width: 256, height: 256, data: new Uint8Array(3 * 256 * 256) };
const pictures = Array.from({ length: 4 }, (_, i) => `https://pictures.example/${i}.png`);

/** So many that a sample is due long before the end. */
const steps = 400;

describe('A training beside drawings', () => {
  const api = ofSuite(() => startTestApi({ MODELS_DIR: smallModels() }));
  const said: string[] = [];
  let stop = (): void => undefined;
  let looking: { filter: KeyFilter; isModerated: boolean };
  beforeEach(() => {
    said.length = 0;
    looking = { filter: 'off', isModerated: false };
    jest.spyOn(TrainingChild.prototype, 'train').mockImplementation(async () => {
      said.push('trained');
      throw new Error('It is tried again later.');
    });
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    // A later test trains its own.
    await api.dataSource.query(`UPDATE tasks SET not_before = now() + interval '1 hour'`);
  });

  /** Runs a new training, up to where its process would train. @param room resolves when drawings have made room */
  async function run(room: () => Promise<void>): Promise<Task> {
    const { app } = api;
    const key = await api.createKey();
    await api.request('POST', '/v1/finetunes', { key, body: { name: 'robot', model: 'shapes', images_url: pictures } });
    const [data, tasks, trainings, logger] = [
      app.get(DataSource),
      app.get(Tasks),
      app.get(Trainings),
      app.get(JsonLogger),
    ];
    const stops = { on: (_: string, handler: () => void) => ((stop = handler), () => undefined) };
    const engines = {
      ...{ devices: ['cpu'], threads: 1, memoryBytes: 2 ** 31, states: [{ loaded: [] }] },
      reserve: (bytes: number) => {
        said.push(bytes > 2 ** 20 ? 'reserved' : 'nothing reserved');
        return { reserved: room().then(() => void said.push('room')), release: () => void said.push('left') };
      },
    };
    const reader = {
      read: async () => {
        said.push('read');
        const data = new Uint8Array(black.data.length).fill(said.length);
        return { ...{ width: 64, height: 64 }, image: { ...black, data } };
      },
    };
    const failures = new FailureService(tasks, logger, { isAtFault: async () => false });
    const service = new TrainingService(
      new TaskRunner(tasks, stops as unknown as StopListener, failures, logger),
      tasks,
      trainings,
      {
        modelOf: () => app.get(ModelStore).find('shapes'),
        trainedFor: async (drawn: unknown) => drawn,
        filterOf: async () => looking.filter,
      } as unknown as ModelResolver,
      { isOn: looking.isModerated },
      new TrainingPictures(reader as unknown as PictureReader),
      new TrainingStore(app.get(IMAGE_STORAGE), data, trainings, logger),
      new ProgressPublisher(data, logger),
      engines as unknown as Engines,
      data,
      logger,
      app.get(CONFIG),
    );
    const task = (await trainings.claim({ undrawable: true }))!;
    await service.run(task, { begin: async () => () => undefined }, new AbortController().signal);
    return data.manager.findOneByOrFail(Task, { id: task.id });
  }

  it('reads its pictures before it takes their memory, and begins when they have made room for it', async () => {
    await run(() => delay(300));
    const read = pictures.map(() => 'read');
    expect(said).toEqual([...read, 'reserved', 'room', 'trained', 'left']);
  });

  it.each([
    ['off', false, true],
    ['off', true, false],
    ['report', false, false],
    ['block', false, false],
  ] as const)('draws samples where nobody looks at pictures: filter %s, moderation %s', async (filter, isOn, draws) => {
    looking = { filter, isModerated: isOn };
    const plan = jest.spyOn(TrainingChild.prototype, 'plan');
    await run(async () => undefined);
    expect(plan).toHaveBeenCalledWith(expect.objectContaining({ hasSamples: draws }));
  });

  it('waits no longer when it is canceled', async () => {
    const begun = await run(() => {
      setTimeout(() => stop(), 300);
      return new Promise(() => undefined);
    });
    expect(said).not.toContain('trained');
    expect(said.at(-1)).toBe('left');
    expect(begun.failures).toBe(0);
  });
});

describe('The process of a training', () => {
  it('goes on to its weights when a sample cannot be drawn, and tries no more of them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-process-'));
    cpSync(join(smallModels(), 'shapes'), folder, { recursive: true });
    const over = new AbortController();
    const child = new TrainingChild(over.signal);
    try {
      await child.plan({
        model: { key: 'shapes', name: 'shapes', folder, hash: '' },
        ...{ device: 'cpu', intraOpNumThreads: 1, pictures: 4, memoryBytes: 2 ** 31, hasSamples: true },
        settings: { steps, seed: 7 },
      });
      // The model was read to plan, so only what reads it again misses this: a sample, and the check of the weights.
      const config = join(folder, 'vae', 'config.json');
      const whole = readFileSync(config);
      writeFileSync(config, 'no JSON');
      const told: string[] = [];
      const command = { type: 'train' as const, samplePrompt: 'a robot', metadata: {} };
      const shown = pictures.map(() => ({ image: black, caption: 'a robot' }));
      const done = await child.train({ ...command, pictures: shown }, (message) => {
        told.push(message.type);
        if (message.type === 'stepped' && message.step === steps / 4 + 1) writeFileSync(config, whole);
      });
      expect(done.weights.length).toBeGreaterThan(0);
      expect(told.filter((type) => type === 'stepped')).toHaveLength(steps);
      expect(told).not.toContain('sampled');
    } finally {
      over.abort();
      rmSync(folder, { recursive: true });
    }
  });
});
