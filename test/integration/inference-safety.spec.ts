import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiKey, type DrawingTask, type KeyFilter } from '@app/domain';
import { insertKey } from '../support/api';
import { createInferenceBench } from '../support/inference';
import { ofSuite } from '../support/of-suite';
import { pixelsOf, safetyFolder, safetyFolderAgainst } from '../support/safety-model';
import { bytesOf, keysIn } from '../support/stored-objects';
import { startWorker } from '../support/worker';

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
  afterEach(() => rmSync(join(modelsDir, 'watch'), { recursive: true, force: true }));

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
    expect(reported).toMatchObject({ status: 'succeeded', filtered: 0, flagged: [0] });
    expect(indexesOf(reported)).toEqual([0, 1]);
    expect(await drawn('off')).toMatchObject({ status: 'succeeded', filtered: 0, flagged: [] });
  });

  it('fails a drawing of which all pictures are flagged, and charges it', async () => {
    install(await safetyFolder('always'));
    const before = await usage();
    const task = await drawn('block', { highResolution: true });
    const error = 'All 2 pictures were flagged by the filter of the key.';
    expect(task).toMatchObject({ status: 'failed', error, filtered: 2, images: [] });
    expect(task.computeSeconds).toBeGreaterThan(0);
    expect(await keysIn(bench.storage, task.id)).toEqual([]);
    expect((await usage()).images).toBe(before.images + 2);
  });

  it.each(['block', 'report'] as const)('draws nothing unseen: %s without a safety checker fails', async (filter) => {
    const error = 'The filter of the key needs a safety checker, and none is installed here.';
    expect(await drawn(filter)).toMatchObject({ status: 'failed', error, computeSeconds: null });
  });
});
