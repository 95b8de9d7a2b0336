import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { openEvents } from '../support/event-source';
import { unpackFolder } from '../support/families';
import { ofSuite } from '../support/of-suite';
import { type PictureServer, startPictureServer } from '../support/picture-server';
import { smallModels } from '../support/quick-model';
import { receiversOfSuite } from '../support/receiver';
import { startTestService } from '../support/service';
import type { ServiceProcess } from '../support/service-process';
import { robotPictures, Trainer, trainingProcesses } from '../support/trainings';
import { until } from '../support/until';

interface PromptJson {
  id: string;
  images: string[];
  error_message: string | null;
}

/** How to train a model in more memory than the service has here. */
const large = { batch: 64, rank: 128, layers: 'all' };

/** Long enough to be met in the middle several times: a few seconds on an idle machine. */
const lastingSteps = 300;

// A training has the lowest priority: beside other tests it takes many times as long as alone.
jest.setTimeout(600_000);

describe('The training of a Fine-Tune on a real service', () => {
  const models = ofSuite(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-models-'));
    cpSync(smallModels(), folder, { recursive: true });
    await unpackFolder(join('test', 'golden', 'families', 'sd15', 'model'), join(folder, 'large'));
    writeFileSync(join(folder, 'large', 'darkroom.json'), JSON.stringify({ training: large }));
    return { folder, close: async () => rmSync(folder, { recursive: true }) };
  });
  const env = () => ({
    PUBLIC_URL: 'https://darkroom.example',
    MODELS_DIR: models.folder,
    MAX_TRAININGS_PER_KEY: '1',
    PICTURES_ALLOW_PRIVATE: 'on',
    INFERENCE_MEMORY_MB: '640',
  });
  const service = ofSuite(() => startTestService({ env: env(), workers: 0 }));
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
    // A test that failed between two workers does not take the next ones with it.
    if (!worker.isRunning) worker = await service.startWorker();
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
  // One that has ended may stay in /proc, without a command line, until its parent asks for its exit code.
  const isGone = (pid: number) =>
    until(async () => !trainingProcesses().includes(pid), 'the process that trained is gone');
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

    const [losses, samples, begun]: [number[], string[], unknown[]] = [[], [], []];
    for (let event = await stream.next(); event; event = await stream.next()) {
      const { loss, preview } = event.data as { loss: number; preview?: string };
      if (event.event === 'started') begun.push(event.data);
      if (event.event === 'progress') losses.push(loss);
      if (preview) samples.push(preview);
      if (event.event === 'terminated') expect(event.data).toMatchObject({ id, status: 'ready' });
    }
    expect(begun).toEqual([{ step: 0, total: 50 }]);
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

  describe('beside others', () => {
    const trained = ofSuite(async () => {
      const [owner, other] = [await newTrainer(), await newTrainer()];
      const first = await owner.train({ images_url: urls, steps: lastingSteps });
      // Keys that have had equally little have no order of their own: the first training begins before the other key comes.
      await until(
        async () => worker.lines.some(({ msg, taskId }) => msg === 'training' && taskId === first.id),
        'it begins',
      );
      const own = [first, await owner.train({ images_url: urls })];
      const others = await other.train({ images_url: urls });
      await Promise.all([...own.map(({ id }) => owner.has(id, 'ready')), other.has(others.id, 'ready')]);
      return { own, others, weights: await owner.weights(own[0].id) };
    });

    it('waits for another one of its key, and not behind it when another key comes', async () => {
      const { own, others } = trained;
      const ids = [...own, others].map(({ id }) => id);
      const begun = worker.lines.filter(({ msg, taskId }) => msg === 'training' && ids.includes(taskId as string));
      expect(begun.map(({ taskId }) => taskId)).toEqual([own[0].id, others.id, own[1].id]);
    });

    it('gets the same weights to the byte, from where it was, when its process and then its worker are killed, and when that has to end', async () => {
      const { id } = await caller.train({ images_url: urls, steps: lastingSteps });
      const isKeptAfter = (step: number) =>
        until(
          async () => (await filesOf(id)).some((name) => Number(/\/0-(\d+)-/.exec(name)?.[1] ?? 0) > step),
          `a state after step ${step} is stored`,
          280_000,
        );
      /** The step from which its last attempt in the worker goes on, once there are so many attempts. */
      const goesOn = (times: number): Promise<number> =>
        until(
          async () => {
            const begun = worker.lines.filter(({ msg, taskId }) => msg === 'training' && taskId === id);
            return begun.length >= times && Number(begun.at(-1)!.from);
          },
          'it goes on',
          280_000,
        );

      await isKeptAfter(0);
      process.kill(await metByTrainer(), 'SIGKILL');
      const first = await goesOn(2);
      expect(first).toBeGreaterThanOrEqual(50);
      expect(worker.isRunning).toBe(true);

      await isKeptAfter(first);
      const pid = await metByTrainer();
      await worker.end('SIGKILL');
      await isGone(pid);
      // As if the worker had been silent for long.
      await service.dataSource.query(`UPDATE tasks SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE id = $1`, [
        id,
      ]);
      worker = await service.startWorker();
      const second = await goesOn(1);
      expect(second).toBeGreaterThan(first);

      const { training } = await caller.reached(id, second + 1);
      expect(await worker.end('SIGTERM')).toBe('SIGTERM');
      const { step } = (await caller.get(id)).training;
      expect(step).toBeGreaterThanOrEqual(training.step);
      worker = await service.startWorker();
      await caller.has(id, 'ready');
      expect(await goesOn(1)).toBe(step);
      expect((await caller.weights(id)).equals(trained.weights)).toBe(true);
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

  it.each([
    ['one of ten', /\[7\]/, () => Array.from({ length: 10 }, (_, i) => (i === 7 ? 'nothing.png?7' : `${i % 4}.png`))],
    ['all', /\[[0-3]\]/, () => Array.from({ length: 4 }, (_, i) => `nothing.png?${i}`)],
  ])('fails where %s cannot be fetched, for which it asks once', async (_, index, names) => {
    const before = elsewhere.asked.length;
    const { id } = await caller.train({ images_url: names().map((name) => `${elsewhere.url}/${name}`) });
    const { error_message: why } = await caller.has(id, 'failed');
    expect(why).toMatch(/^The picture in `images_url\[\d\]` could not be fetched: its server answered 404\.$/);
    expect(why).toMatch(index);
    const missed = elsewhere.asked.slice(before).filter((path) => path.startsWith('/nothing'));
    expect(missed.length).toBeGreaterThan(0);
    expect(new Set(missed).size).toBe(missed.length);
  });

  describe('that lasts', () => {
    const lasting = ofSuite(async () => {
      const owner = await newTrainer();
      const uploads = await owner.upload();
      const { id } = await owner.train({ images_url: uploads, steps: 5000 });
      await owner.reached(id, 1);
      return { owner, uploads, id };
    });

    it('lets a picture of another key be drawn meanwhile', async () => {
      const body = { prompt: 'a red circle', steps: 2, model: 'shapes' };
      const headers = { prefer: 'wait=60' };
      const reply = await service.request('POST', '/v1/sd/text-to-image', { key: caller.key, body, headers });
      expect(reply.body).toMatchObject({ status: 'succeeded' });
      expect(await lasting.owner.get(lasting.id)).toMatchObject({ status: 'training' });
    });

    it('is canceled while it is queued, while it fetches and while it trains, and nothing is kept', async () => {
      const { owner, uploads, id: trained } = lasting;
      const pid = await metByTrainer();
      const queued = await owner.train({ images_url: urls });
      expect(await owner.post(queued.id, 'cancel')).toMatchObject({ status: 'canceled' });
      expect(await owner.post(trained, 'cancel')).toMatchObject({ status: 'canceled', weights: null });
      await isGone(pid);
      const fetching = await owner.train({ images_url: [...urls.slice(0, 3), `${elsewhere.url}/slow.png`] });
      await until(async () => elsewhere.asked.includes('/slow.png'), 'it fetches');
      expect(await owner.post(fetching.id, 'cancel')).toMatchObject({ status: 'canceled' });
      await until(async () => trainingProcesses(worker.pid).length === 0, 'nothing trains');
      for (const id of [queued.id, fetching.id, trained]) {
        await until(async () => (await filesOf(id)).length === 0, 'nothing is kept');
        expect((await owner.get(id)).status).toBe('canceled');
      }
      for (const url of uploads) expect((await fetch(service.baseUrl + new URL(url).pathname)).status).toBe(404);
    });
  });

  it('fails at once, with the numbers, where its model does not fit into memory', async () => {
    const { id } = await caller.train({ images_url: urls, model: 'large' });
    const before = elsewhere.asked.length;
    const { error_message: why } = await caller.has(id, 'failed');
    expect(why).toMatch(/^To train this model takes \d\.\d GiB of memory at the least, .* may use 0\.6 GiB\.$/);
    expect(elsewhere.asked).toHaveLength(before);
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
