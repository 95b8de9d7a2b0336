import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DrawingTask, InferenceWorker, newIdentifier, Task } from '@app/domain';
import { Tasks } from '@app/tasks';
import sharp from 'sharp';
import { drawingOf, type DrawingValues } from '../support/drawing-rows';
import { createInferenceBench, faultyThread } from '../support/inference';
import { ofTest } from '../support/of-suite';
import { startTestService } from '../support/service';
import { bytesOf } from '../support/stored-objects';
import { until } from '../support/until';
import { startWorker } from '../support/worker';

describe('the inference worker', () => {
  const bench = ofTest(createInferenceBench);

  it('draws again, with the same seed, after the thread of its engine died', async () => {
    await startWorker(bench, { threadFile: faultyThread('dyingEngine') });
    const { id } = await bench.addTask({ steps: 5 });
    const task = await bench.terminated(id);
    expect(task).toMatchObject({ status: 'succeeded', attempt: 2, error: null });
    expect(bench.logged.map(({ msg }) => msg)).toContain('engine thread ended');
    expect(await bench.backEnds.storage.contents(id)).toEqual([`${id}/2/0.png`, `${id}/2/0.thumbnail.webp`]);
    const untroubled = await bench.terminated((await bench.addTask({ steps: 5 })).id);
    const pixels = async ({ images }: DrawingTask): Promise<Buffer> =>
      sharp(await bytesOf(bench.storage, images[0].storageKey))
        .raw()
        .toBuffer();
    expect(Buffer.compare(await pixels(task), await pixels(untroubled))).toBe(0);
  });

  it('whose engine hangs reports it, gives its task back, and draws nothing more', async () => {
    let stalls = 0;
    const config = { ...bench.config, engineStallSeconds: 1 };
    await startWorker(bench, { config, threadFile: faultyThread('hangingEngine'), onStall: () => stalls++ });
    const { id } = await bench.addTask();
    await until(async () => stalls === 1, 'the engine is found to hang');
    const { healthPort } = bench.logged.find(({ msg }) => msg === 'inference is ready')!;
    await until(async () => {
      const response = await fetch(`http://127.0.0.1:${healthPort as number}/health/ready`);
      const { checks } = (await response.json()) as { checks: Record<string, boolean> };
      return response.status === 503 && !checks.engine && checks.queue;
    }, 'it says that its engine is not ready, and nothing else');
    await until(async () => (await bench.taskOf(id)).status === 'queued', 'its task is given back');
    // On a busy machine a healthy engine may be silent for more than a second, too.
    await startWorker(bench, { config: { ...bench.config, engineStallSeconds: 60 } });
    expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded', attempt: 2 });
    expect(bench.logged).toContainEqual(expect.objectContaining({ msg: 'engine is of no more use', device: 'cpu' }));
  });

  it('charges each of the tasks that are drawn side by side its share of the engine’s time', async () => {
    const owners = [newIdentifier(), newIdentifier(), newIdentifier()];
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) ids.push((await bench.addTask({ ownerId: owners[n % 3], steps: 10 })).id);
    await startWorker(bench);
    const tasks = await Promise.all(ids.map((id) => bench.terminated(id)));
    const seconds = tasks.map(({ computeSeconds }) => computeSeconds!);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    const started = tasks.map(({ startedAt }) => startedAt!.getTime() / 1000);
    const ended = tasks.map(({ completedAt }) => completedAt!.getTime() / 1000);
    // They were drawn side by side, and all together they are charged no more than the time that there was.
    expect(sum(ended) - sum(started)).toBeGreaterThan(2 * sum(seconds));
    expect(sum(seconds)).toBeLessThanOrEqual(Math.max(...ended) - Math.min(...started));
    for (const owner of owners) {
      const own = sum(tasks.filter(({ ownerId }) => ownerId === owner).map(({ computeSeconds }) => computeSeconds!));
      const [row] = await bench.dataSource.query<{ virtual_time: number; compute_seconds: number }[]>(
        `SELECT virtual_time, compute_seconds FROM fair_shares JOIN daily_usage USING (owner_id) WHERE owner_id = $1`,
        [owner],
      );
      expect(row.virtual_time).toBeCloseTo(own, 6);
      expect(row.compute_seconds).toBeCloseTo(own, 6);
    }
  });

  it('with DEVICE=auto says of each device that it passes over why', async () => {
    const tried = ['cuda:0', 'webgpu', 'cpu'];
    await startWorker(bench, { config: { ...bench.config, devices: 'auto' } });
    const said = bench.logged.map(({ msg }) => String(msg));
    const end = said.findIndex((text) => text.startsWith('drawing on '));
    const passedOver = tried.slice(0, tried.indexOf(said[end].slice('drawing on '.length)));
    // Any reason, for this machine may have a GPU.
    const sentences = said.slice(0, end).filter((text) => text.includes(' is not used: '));
    expect(sentences).toHaveLength(passedOver.length);
    for (const [index, device] of passedOver.entries())
      expect(sentences[index]).toMatch(new RegExp(`^${device} is not used: .{10}`));
  });

  it('that is to use more threads than there are cores uses one a core, and warns of it', async () => {
    await startWorker(bench, { config: { ...bench.config, inferenceThreads: 999 } });
    const cores = availableParallelism();
    expect(bench.logged.find(({ msg }) => msg === 'drawing on cpu')).toMatchObject({ threads: cores });
    const warnings = bench.logged.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);
    expect(warnings).toEqual([
      `INFERENCE_THREADS is 999, and this process may use ${cores} cores: ${cores} threads are used`,
    ]);
    const { id } = await bench.addTask();
    expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded' });
  });

  it('tells that it refused a model, and tries it again when its files have changed', async () => {
    const modelsDir = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    await cp(join(process.env.TEST_MODELS_DIR!, 'shapes'), join(modelsDir, 'odd'), { recursive: true });
    const file = join(modelsDir, 'odd/unet/diffusion_pytorch_model.safetensors');
    const whole = await readFile(file);
    // Weights that are no numbers: nothing tells before it is tried.
    await writeFile(file, Buffer.concat([whole.subarray(0, 2 ** 16), Buffer.alloc(whole.length - 2 ** 16, 0xff)]));
    const worker = await startWorker(bench, { config: { ...bench.config, modelsDir } });
    const draw = async () => bench.terminated((await bench.addTask({ model: 'odd' })).id);
    const said = async () =>
      (await bench.dataSource.manager.find(InferenceWorker)).map(({ models, broken }) => ({ models, broken }));

    const problem = expect.stringMatching(/^unet\/diffusion_pytorch_model\.safetensors /) as string;
    const failed = await draw();
    expect(failed).toMatchObject({ status: 'failed', attempt: 1 });
    expect(failed.error).toMatch(/^The model odd cannot be drawn with: unet\/diffusion_pytorch_model\.safetensors /);
    await until(async () => (await said())[0].models?.length === 0, 'the worker no longer has the model');
    expect(await said()).toEqual([
      { models: [], broken: [{ key: expect.stringMatching(/^odd@/) as string, problem }] },
    ]);

    await writeFile(file, whole);
    expect(await draw()).toMatchObject({ status: 'succeeded' });
    await worker.close();
    await rm(modelsDir, { recursive: true });
  });

  // The worker asks again a few times.
  it.each([1, 10])(
    'keeps the pictures of a task whose settlement is stored and its answer lost %d times',
    async (count) => {
      const worker = await startWorker(bench);
      const tasks = worker.get(Tasks);
      const settle = tasks.settle.bind(tasks);
      let lost = 0;
      jest.spyOn(tasks, 'settle').mockImplementation(async (...args) => {
        const isSettled = await settle(...args);
        if (lost === count) return isSettled;
        lost++;
        throw new Error('Connection terminated unexpectedly');
      });
      const { id } = await bench.addTask({ steps: 1, numImages: 2 });
      const { images } = await bench.terminated(id);
      await worker.close();
      expect(lost).toBeGreaterThan(0);
      expect(await bench.taskOf(id)).toMatchObject({ status: 'succeeded', attempt: 1 });
      const keys = images.map(({ storageKey }) => storageKey.replace(`${id}/`, '')).sort();
      expect(keys).toHaveLength(2);
      expect(
        (await bench.backEnds.storage.contents(id)).filter((key) => keys.some((one) => key.endsWith(one))),
      ).toHaveLength(2);
    },
  );

  it('tries a task that may have ended its worker alone before any other begins, although others keep coming', async () => {
    // Tasks that wait at any time, each of another owner.
    const waiting = 20;
    await startWorker(bench);
    const countOf = async (condition: string, ...values: unknown[]): Promise<number> => {
      const sql = `SELECT count(*)::integer AS count FROM tasks WHERE ${condition}`;
      const [{ count }] = await bench.dataSource.query<{ count: number }[]>(sql, values);
      return count;
    };
    let isOver = false;
    const keepComing = async (): Promise<void> => {
      while (!isOver) {
        const missing = waiting - (await countOf(`status = 'queued'`));
        for (let i = 0; i < missing; i++) await bench.addTask({ ownerId: newIdentifier(), steps: 2 });
        await until(async () => isOver || (await countOf(`status = 'queued'`)) < waiting, 'one of them begins');
      }
    };
    const coming = keepComing();
    try {
      await until(async () => (await countOf(`status = 'succeeded'`)) > waiting, 'others are drawn all the time');
      // Its owner had had the least when it was claimed, and has it again since the charge was given back.
      const ownerId = newIdentifier();
      await bench.dataSource.query('INSERT INTO fair_shares (owner_id, virtual_time) VALUES ($1, -1000)', [ownerId]);
      const suspect = await bench.addTask({ ownerId, deaths: 1, attempt: 1, steps: 2 });
      // A task that began before it was committed could not know of it.
      const [{ now: dueAt }] = await bench.dataSource.query<{ now: Date }[]>('SELECT clock_timestamp() AS now');
      const { status, startedAt, completedAt } = await bench.terminated(suspect.id);
      expect(status).toBe('succeeded');
      const begunBetween = (from: Date, to: Date) =>
        countOf('id <> $1 AND started_at > $2 AND started_at < $3', suspect.id, from, to);
      // The claim that was under way could not know of it, nor could one that began in the same moment.
      expect(await begunBetween(dueAt, startedAt!)).toBeLessThanOrEqual(1);
      expect(await begunBetween(startedAt!, completedAt!)).toBeLessThanOrEqual(1);
      const after = await countOf(`status = 'succeeded'`);
      await until(async () => (await countOf(`status = 'succeeded'`)) > after + 1, 'the others go on');
    } finally {
      isOver = true;
      await coming;
    }
  });

  it('fails a task alone that ends the thread of its engine', async () => {
    const add = (values: DrawingValues) => bench.addTask({ ownerId: newIdentifier(), steps: 4, ...values });
    // The others take longer than the killer, so that it finds them being drawn.
    const others = { steps: 40 };
    const killer = await add({ prompt: 'a killer' });
    const before = [killer, await add(others), await add(others), await add(others), await add(others)];
    await startWorker(bench, { threadFile: faultyThread('killer') });
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
  });
});

it('a task that ends the process of its worker fails alone', async () => {
  /** Beside a killer; their owners differ, so that all are drawn at once. */
  const neighbours = 5;
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
