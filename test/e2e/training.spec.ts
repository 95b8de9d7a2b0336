import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { openEvents } from '../support/event-source';
import { ofSuite } from '../support/of-suite';
import { type PictureServer, startPictureServer } from '../support/picture-server';
import { trainableModels } from '../support/quick-model';
import { receiversOfSuite } from '../support/receiver';
import { startTestService } from '../support/service';
import type { ServiceProcess } from '../support/service-process';
import { robotPictures, type TrainedJson, Trainer, trainingProcesses } from '../support/trainings';
import { until } from '../support/until';

interface PromptJson {
  id: string;
  images: string[];
  error_message: string | null;
}

/** Long enough to be met in the middle: some seconds on an idle machine. */
const lastingSteps = 150;

// A training has the lowest priority: beside other tests it takes many times as long as alone.
jest.setTimeout(600_000);

describe('The training of a Fine-Tune on a real service', () => {
  const env = {
    PUBLIC_URL: 'https://darkroom.example',
    MODELS_DIR: '',
    MAX_TRAININGS_PER_KEY: '1',
    PICTURES_ALLOW_PRIVATE: 'on',
  };
  const service = ofSuite(() => startTestService({ env: { ...env, MODELS_DIR: trainableModels() }, workers: 0 }));
  const startReceiver = receiversOfSuite();
  const newTrainer = async () => new Trainer(service, await service.createKey());
  let caller: Trainer;
  let worker: ServiceProcess;
  let elsewhere: PictureServer;
  let urls: string[];

  beforeAll(async () => {
    worker = await service.startWorker();
    const pictures = robotPictures();
    elsewhere = await startPictureServer({
      ...Object.fromEntries(pictures.map((file, i) => [`/${i}.png`, file])),
      '/text.png': Buffer.from('no picture at all'),
      // It never answers.
      '/slow.png': () => undefined,
    });
    urls = pictures.map((_, i) => `${elsewhere.url}/${i}.png`);
  });

  afterAll(() => elsewhere.close());
  beforeEach(async () => {
    caller = await newTrainer();
  });

  const promptOf = (of: Trainer, id: string, prompt: string) => of.get<PromptJson>(id, `/prompts/${prompt}`);
  const drawn = (of: Trainer, id: string, prompt: string): Promise<PromptJson> =>
    until(async () => {
      const found = await promptOf(of, id, prompt);
      return found.images.length > 0 && found;
    }, 'the Prompt is drawn');
  const filesOf = async (id: string): Promise<string[]> => [
    ...(await service.backEnds.storage.contents(`trainings/${id}`)),
    ...(await service.backEnds.storage.contents(`weights/${id}`)),
  ];
  const isGone = (pid: number) => until(async () => !existsSync(`/proc/${pid}`), 'the process that trained is gone');
  const metByTrainer = () => until(async () => trainingProcesses(worker.pid)[0], 'a process trains');

  it('runs to the end: its Prompts are drawn with it, its webhook is told, its uploads are gone', async () => {
    const receiver = await startReceiver();
    const images_url = await caller.upload();
    const { id, prompts } = await caller.train({
      images_url,
      webhook: receiver.url,
      prompts: [{ prompt: 'a robot on a red background', steps: 2 }],
    });
    const stream = await openEvents(`${service.baseUrl}/v1/finetunes/${id}/events`, caller.key.token);
    const [meanwhile] = await caller.post<PromptJson[]>(id, 'prompts', [{ prompt: 'a blue robot', steps: 2 }]);

    const [losses, samples]: [number[], string[]] = [[], []];
    for (let event = await stream.next(); event; event = await stream.next()) {
      const { loss, preview } = event.data as { loss: number; preview?: string };
      if (event.event === 'progress') losses.push(loss);
      if (preview) samples.push(preview);
      if (event.event === 'terminated') expect(event.data).toMatchObject({ id, status: 'ready' });
    }
    expect(losses.length).toBeGreaterThan(1);
    expect(losses.every(Number.isFinite)).toBe(true);
    expect(samples[0]).toMatch(/^data:image\/jpeg;base64,/);

    const ready = await caller.has(id, 'ready');
    expect(ready).toMatchObject({ error_message: null, weights: { kind: 'lora' }, training: { images: 4, step: 50 } });
    expect(ready.training.compute_seconds).toBeGreaterThan(0);
    const hook = await receiver.next(1);
    new Webhook(caller.key.webhookSecret).verify(hook.body, hook.headers as Record<string, string>);
    expect(JSON.parse(hook.body)).toEqual(ready);

    for (const prompt of [...prompts, meanwhile.id]) await drawn(caller, id, prompt);
    const usage = await service.request<{ images: number; compute_seconds: number }[]>('GET', '/v1/usage', caller);
    expect(usage.body[0].images).toBe(2);
    expect(usage.body[0].compute_seconds).toBeGreaterThan(ready.training.compute_seconds);
    await until(async () => (await service.backEnds.storage.contents(`trainings/${id}`)).length === 0, 'it is clean');
    for (const url of images_url) expect((await fetch(service.baseUrl + new URL(url).pathname)).status).toBe(404);
  });

  describe('that is killed', () => {
    const undisturbed = ofSuite(async () => {
      const owner = await newTrainer();
      const { id } = await owner.train({ images_url: urls, steps: lastingSteps });
      await owner.has(id, 'ready');
      return { weights: await owner.weights(id) };
    });
    /** A training that has done some steps and has a state to go on from. */
    const half = async (): Promise<TrainedJson> => {
      const { id } = await caller.train({ images_url: urls, steps: lastingSteps });
      const stored = async (): Promise<boolean> => (await filesOf(id)).some((name) => /\/0-(?:50|100)-/.test(name));
      await until(stored, 'a state is stored', 280_000);
      return caller.get(id);
    };
    const expectSame = async (id: string): Promise<void> => {
      await caller.has(id, 'ready');
      expect((await caller.weights(id)).equals(undisturbed.weights)).toBe(true);
      const started = worker.lines.filter(({ msg, taskId }) => msg === 'training' && taskId === id);
      expect(Number(started.at(-1)!.from)).toBeGreaterThanOrEqual(50);
    };

    it('with its process gets the same weights to the byte, from where it was', async () => {
      const { id } = await half();
      process.kill(await metByTrainer(), 'SIGKILL');
      await expectSame(id);
      expect(worker.isRunning).toBe(true);
    });

    it('with its whole worker gets the same weights to the byte, from where it was', async () => {
      const { id } = await half();
      const pid = await metByTrainer();
      await worker.end('SIGKILL');
      await isGone(pid);
      worker = await service.startWorker();
      await expectSame(id);
    });
  });

  it.each([
    ['text.png', /`images_url\[2\]` .*PNG/],
    ['nothing.png', /`images_url\[2\]` .*404/],
  ])('fails for a picture that cannot be read, %s, which it names, and keeps nothing', async (name, sentence) => {
    const receiver = await startReceiver();
    const { id, prompts } = await caller.train({
      images_url: [...urls.slice(0, 2), `${elsewhere.url}/${name}`, urls[3]],
      prompts: [{ prompt: 'a robot' }],
      webhook: receiver.url,
    });
    const failed = await caller.has(id, 'failed');
    expect(failed.error_message).toMatch(sentence);
    expect(failed.weights).toBeNull();
    const { error_message: why } = await promptOf(caller, id, prompts[0]);
    expect(why).toBe(`The training of the Fine-Tune failed: ${failed.error_message}`);
    expect(JSON.parse((await receiver.next(1)).body)).toEqual(failed);
    await until(async () => (await filesOf(id)).length === 0, 'nothing is kept');
  });

  it('is canceled while it is queued, while it fetches and while it trains, and nothing is kept', async () => {
    const uploads = await caller.upload();
    const trained = await caller.train({ images_url: uploads, steps: 5000 });
    await caller.reached(trained.id, 1);
    const pid = await metByTrainer();
    const queued = await caller.train({ images_url: urls });
    expect(await caller.post(queued.id, 'cancel')).toMatchObject({ status: 'canceled' });
    expect(await caller.post(trained.id, 'cancel')).toMatchObject({ status: 'canceled', weights: null });
    await isGone(pid);
    const fetching = await caller.train({ images_url: [...urls.slice(0, 3), `${elsewhere.url}/slow.png`] });
    await until(async () => elsewhere.asked.includes('/slow.png'), 'it fetches');
    expect(await caller.post(fetching.id, 'cancel')).toMatchObject({ status: 'canceled' });
    await until(async () => trainingProcesses(worker.pid).length === 0, 'nothing trains');
    for (const { id } of [queued, fetching, trained]) {
      await until(async () => (await filesOf(id)).length === 0, 'nothing is kept');
      expect((await caller.get(id)).status).toBe('canceled');
    }
    for (const url of uploads) expect((await fetch(service.baseUrl + new URL(url).pathname)).status).toBe(404);
  });

  it('waits for another one of its key, and not behind it when another key comes', async () => {
    const other = await newTrainer();
    const own = [await caller.train({ images_url: urls }), await caller.train({ images_url: urls })];
    const others = await other.train({ images_url: urls });
    await Promise.all([...own.map(({ id }) => caller.has(id, 'ready')), other.has(others.id, 'ready')]);
    const begun = worker.lines.filter(({ msg }) => msg === 'training').map(({ taskId }) => taskId);
    expect(begun.slice(-3)).toEqual([own[0].id, others.id, own[1].id]);
  });

  it('lets a picture of another key be drawn meanwhile', async () => {
    const other = await service.createKey();
    const { id } = await caller.train({ images_url: urls, steps: 5000 });
    await caller.reached(id, 1);
    const body = { prompt: 'a red circle', steps: 2, model: 'shapes' };
    const headers = { prefer: 'wait=60' };
    const reply = await service.request('POST', '/v1/sd/text-to-image', { key: other, body, headers });
    expect(reply.body).toMatchObject({ status: 'succeeded' });
    expect(await caller.get(id)).toMatchObject({ status: 'training' });
    await caller.post(id, 'cancel');
  });

  it('goes on in the next worker when its own is asked to end', async () => {
    const { id } = await caller.train({ images_url: urls, steps: lastingSteps });
    const { training } = await caller.reached(id, 1);
    expect(await worker.end('SIGTERM')).toBe('SIGTERM');
    const { step } = (await caller.get(id)).training;
    expect(step).toBeGreaterThanOrEqual(training.step);
    worker = await service.startWorker();
    await caller.has(id, 'ready');
    const [{ from }] = worker.lines.filter(({ msg }) => msg === 'training');
    expect(from).toBe(step);
  });

  it('fails at once, with the numbers, where its model does not fit into memory', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    const settings = join(folder, 'shapes', 'darkroom.json');
    await cp(join(trainableModels(), 'shapes'), join(folder, 'shapes'), { recursive: true });
    const defaults = JSON.parse(await readFile(settings, 'utf8')) as object;
    await writeFile(settings, JSON.stringify({ ...defaults, training: { batch: 64, rank: 128, layers: 'all' } }));
    const small = await startTestService({ env: { ...env, MODELS_DIR: folder, INFERENCE_MEMORY_MB: '256' } });
    try {
      const owner = new Trainer(small, await small.createKey());
      const { id } = await owner.train({ images_url: urls });
      const before = elsewhere.asked.length;
      const { error_message: why } = await owner.has(id, 'failed');
      expect(why).toMatch(/^To train this model takes \d\.\d GiB of memory at the least, .* may use 0\.3 GiB\.$/);
      expect(elsewhere.asked).toHaveLength(before);
    } finally {
      await small.close();
      await rm(folder, { recursive: true });
    }
  });

  it('of a sandbox key takes seconds, reads no picture and trains nothing', async () => {
    await service.dataSource.query('UPDATE api_keys SET sandbox = true WHERE id = $1', [caller.key.id]);
    const before = elsewhere.asked.length;
    const metadata = { sandbox: { delay_ms: 500 } };
    const { id, prompts } = await caller.train({ images_url: urls, metadata, prompts: [{ prompt: 'a robot' }] });
    expect(await caller.has(id, 'ready')).toMatchObject({ weights: { kind: 'lora' }, error_message: null });
    await drawn(caller, id, prompts[0]);
    const failing = { sandbox: { fail: 'Out of paint.', delay_ms: 1 } };
    const { id: second } = await caller.train({ images_url: urls, metadata: failing });
    expect((await caller.has(second, 'failed')).error_message).toBe('Out of paint.');
    expect(elsewhere.asked).toHaveLength(before);
  });
});
