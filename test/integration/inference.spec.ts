import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import sharp from 'sharp';
import { createInference } from '../../apps/inference/src/create-inference';
import type { InferenceBench } from '../support/inference';
import { createInferenceBench, threadFile } from '../support/inference';

describe('the inference worker', () => {
  let bench: InferenceBench;
  let worker: INestApplicationContext;

  beforeAll(async () => {
    bench = await createInferenceBench();
    worker = await createInference({ ...bench, threadFile });
  });

  afterAll(async () => {
    await worker.close();
    await bench.close();
  });

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
        width: 512,
        height: 512,
      }),
    ]);
    const file = join(bench.imagesDir, task.images[0].storageKey);
    const { data, info } = await sharp(file).raw().toBuffer({ resolveWithObject: true });
    expect(info).toMatchObject({ width: 512, height: 512, channels: 3 });
    expect(new Set(data).size).toBeGreaterThan(16);
    expect(await readdir(join(bench.imagesDir, id, '1'))).toEqual(['0.png']);
  });
});
