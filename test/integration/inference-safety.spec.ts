import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiKey, AuditEntry, type DrawingTask, type KeyFilter, newIdentifier } from '@app/domain';
import { Metrics } from '@app/observability';
import type { INestApplicationContext } from '@nestjs/common';
import { insertKey } from '../support/api';
import { createInferenceBench } from '../support/inference';
import { startModeration } from '../support/moderation-server';
import { ofSuite } from '../support/of-suite';
import { pixelsOf, safetyFolder, safetyFolderAgainst } from '../support/safety-model';
import { bytesOf, keysIn } from '../support/stored-objects';
import { until } from '../support/until';
import { startWorker } from '../support/worker';

describe('the moderation of the operator', () => {
  const moderation = ofSuite(startModeration);
  const bench = ofSuite(() => createInferenceBench({ MODERATION_URL: moderation.url }));
  const keyOf = async (filter: KeyFilter) => (await insertKey(bench.dataSource, { filter })).id;
  let worker: INestApplicationContext;
  beforeAll(async () => (worker = await startWorker(bench)));

  /** Draws three pictures, of which the moderation flags the second that it is shown. */
  async function drawn(ownerId: string, id = newIdentifier()): Promise<DrawingTask> {
    let shown = 0;
    moderation.behaviour.flagsPicture = () => ++shown === 2;
    await bench.addTask({ id, ownerId, numImages: 3 });
    return bench.terminated(id);
  }

  it('keeps a flagged picture from being stored, whatever the key says', async () => {
    const task = await drawn(await keyOf('off'));
    expect(task).toMatchObject({ status: 'succeeded', filtered: 1, flagged: [], flaggedBy: ['moderation: violence'] });
    expect(task.images.map(({ index }) => index).sort()).toEqual([0, 2]);
    const shown = moderation.asked.inputs.at(-1) as { image_url: { url: string } };
    const [head, jpeg] = shown.image_url.url.split(',');
    expect(head).toBe('data:image/jpeg;base64');
    expect(await pixelsOf(Buffer.from(jpeg, 'base64'))).toMatchObject({ width: 256, height: 256 });
  });

  it('tells the audit how many pictures were not stored', async () => {
    const [ownerId, taskId] = [await keyOf('off'), newIdentifier()];
    const asked = { taskId, ownerId, kind: 'generation', model: 'shapes', at: new Date() } as const;
    await bench.dataSource.manager.insert(AuditEntry, { ...asked, decision: 'accepted' });
    await drawn(ownerId, taskId);
    const entry = await bench.dataSource.manager.findOneByOrFail(AuditEntry, { taskId });
    expect(entry).toMatchObject({ decision: 'succeeded', filtered: 1, flagged: 0 });
    expect(entry.servedBy).toMatch(/^shapes@/);
  });

  it('gives a drawing back that it cannot be asked about', async () => {
    moderation.behaviour.fault = 'broken';
    const { id } = await bench.addTask({ numImages: 1 });
    const line = await until(
      async () => bench.logged.find(({ msg, taskId }) => msg.startsWith('given back: the moder') && taskId === id),
      'it is given back',
    );
    expect(JSON.stringify(line)).toContain('no \\"results\\"');
    expect(await worker.get(Metrics).text()).toMatch(/^darkroom_moderation_requests_total\{outcome="failed"\} [1-9]/m);
    moderation.behaviour.fault = undefined;
    // It would wait half a minute.
    await bench.dataSource.query('UPDATE tasks SET not_before = NULL WHERE id = $1', [id]);
    bench.wakeUps.ask();
    expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded', filtered: 0 });
  });
});

describe('the filter of a key', () => {
  const modelsDir = mkdtempSync(join(tmpdir(), 'darkroom-models-'));
  const bench = ofSuite(() => createInferenceBench({ MODELS_DIR: modelsDir }));
  let ownerId: string;

  beforeAll(async () => {
    cpSync(join(process.env.TEST_MODELS_DIR!, 'shapes'), join(modelsDir, 'shapes'), { recursive: true });
    ({ id: ownerId } = await insertKey(bench.dataSource));
    await startWorker(bench);
  });
  afterAll(() => rmSync(modelsDir, { recursive: true, force: true }));
  afterEach(() => {
    for (const folder of ['watch', 'upscalers']) rmSync(join(modelsDir, folder), { recursive: true, force: true });
  });

  const install = (folder: string): void => cpSync(folder, join(modelsDir, 'watch'), { recursive: true });

  async function drawn(filter: KeyFilter, values: Partial<DrawingTask> = {}): Promise<DrawingTask> {
    await bench.dataSource.manager.update(ApiKey, { id: ownerId }, { filter });
    const { id } = await bench.addTask({ ownerId, numImages: 2, ...values });
    return bench.terminated(id);
  }
  const indexesOf = ({ images }: DrawingTask): number[] => images.map(({ index }) => index).sort();
  const usage = async (): Promise<{ images: number; steps: number; pixels: number }> => {
    const select = 'SELECT sum(images)::int AS images, sum(steps)::int AS steps, sum(pixels)::int AS pixels';
    const [row] = await bench.dataSource.query<[{ images: number; steps: number; pixels: number }]>(
      `${select} FROM daily_usage WHERE owner_id = $1`,
      [ownerId],
    );
    return row;
  };

  /** Installs a checker that flags the first of two pictures. */
  async function installAgainstFirst(): Promise<void> {
    const { images } = await drawn('off');
    const files = images.sort((a, b) => a.index - b.index).map(({ storageKey }) => bytesOf(bench.storage, storageKey));
    install(await safetyFolderAgainst(await Promise.all((await Promise.all(files)).map(pixelsOf))));
  }

  it('keeps a flagged picture from being stored, and the thumbnail is that of the first that is', async () => {
    await installAgainstFirst();
    const before = await usage();
    const task = await drawn('block');
    expect(task).toMatchObject({ status: 'succeeded', error: null, filtered: 1, flagged: [] });
    expect(indexesOf(task)).toEqual([1]);
    expect(task.images[0].thumbnailBytes).toBeGreaterThan(100);
    const keys = await keysIn(bench.storage, task.id);
    expect(keys.filter((key) => key.includes('/0'))).toEqual([]);
    const after = await usage();
    const size = 256 * 256;
    expect(after).toEqual({ images: before.images + 2, steps: before.steps + 6, pixels: before.pixels + 2 * size });
  });

  it('names a flagged picture where it only reports, and looks at none where it is off', async () => {
    await installAgainstFirst();
    const reported = await drawn('report');
    expect(reported).toMatchObject({ status: 'succeeded', filtered: 0, flagged: [0], flaggedBy: ['safety checker'] });
    expect(indexesOf(reported)).toEqual([0, 1]);
    expect(await drawn('off')).toMatchObject({ status: 'succeeded', filtered: 0, flagged: [] });
  });

  it('fails a drawing of which all pictures are flagged, enlarges none of them, and charges it', async () => {
    install(await safetyFolder('always'));
    mkdirSync(join(modelsDir, 'upscalers'));
    writeFileSync(join(modelsDir, 'upscalers', 'broken.onnx'), 'It could enlarge nothing.');
    const before = await usage();
    const task = await drawn('block', { highResolution: true });
    const error = 'All 2 pictures were flagged, and none is stored.';
    expect(task).toMatchObject({ status: 'failed', error, filtered: 2, images: [], flaggedBy: ['safety checker'] });
    expect(task.computeSeconds).toBeGreaterThan(0);
    expect(await keysIn(bench.storage, task.id)).toEqual([]);
    expect((await usage()).images).toBe(before.images + 2);
  });

  it('draws nothing unseen for a key that is gone', async () => {
    const { id: gone } = await insertKey(bench.dataSource);
    const { id } = await bench.addTask({ ownerId: gone, notBefore: new Date(Date.now() + 60_000) });
    await bench.dataSource.manager.delete(ApiKey, { id: gone });
    await bench.dataSource.query('UPDATE tasks SET not_before = NULL WHERE id = $1', [id]);
    bench.wakeUps.ask();
    expect(await bench.terminated(id)).toMatchObject({ status: 'failed', images: [] });
  });

  it.each(['block', 'report'] as const)('draws nothing unseen: %s without a safety checker fails', async (filter) => {
    const error = 'The filter of the key needs a safety checker, and none is installed here.';
    expect(await drawn(filter)).toMatchObject({ status: 'failed', error, computeSeconds: null });
  });
});
