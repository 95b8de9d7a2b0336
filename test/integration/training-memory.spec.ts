import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { settingsOfCheckpoint, writeSafetensors } from '@app/diffusion';
import { planTraining } from '../../apps/inference/src/training/plan-training';
import { unpackFamily } from '../support/families';

const folder = join('models', 'shapes');
const ample = 2 ** 40;
const mib = 2 ** 20;

describe('The memory of a training', () => {
  const plan = (memoryBytes: number, more: Partial<Parameters<typeof planTraining>[0]> = {}) =>
    planTraining({
      ...{ folder, memoryBytes, device: 'cpu', intraOpNumThreads: 1, pictures: 4, hasSamples: true },
      // So large that it does not fit everywhere.
      settings: { batch: 16 },
      ...more,
    });
  /** The state that a training of these settings leaves to go on from, as far as it matters here. */
  const checkpointOf = (settings: object) =>
    writeSafetensors(new Map(), { training: JSON.stringify({ settings: { rank: 16, layers: 'all', ...settings } }) });

  it('is taken in the cheapest form that fits: as it is, computed again, with smaller pictures', async () => {
    const most = await plan(ample);
    expect(most).toMatchObject({ size: 512, form: 'plain', note: null, maySample: true });
    const whole = most.bytes / 2;
    expect(await plan(ample, { hasSamples: false })).toMatchObject({ bytes: whole, maySample: false });
    const exactly = await plan(whole);
    expect(exactly).toMatchObject({ size: 512, form: 'plain', bytes: whole, maySample: false });
    const again = await plan(whole - mib);
    expect(again).toMatchObject({ size: 512, form: 'recomputed', note: null });
    const small = await plan(again.bytes - mib);
    expect(small).toMatchObject({ size: 256, form: 'plain' });
    expect(small.note).toBe(
      'It was trained with pictures of 256 x 256 pixels instead of 512 x 512, which take more memory than there is.',
    );
  });

  it('leaves room for a model that draws, unless the training fits in no form beside it', async () => {
    const whole = (await plan(ample)).bytes / 2;
    const beside = await plan(2 * whole, { drawingBytes: whole + mib });
    expect(beside).toMatchObject({ size: 512, form: 'recomputed', maySample: false });
    const alone = await plan(whole, { drawingBytes: whole - mib });
    expect(alone).toMatchObject({ size: 256, maySample: false });
    expect(alone.bytes).toBeLessThan(beside.bytes);
  });

  it('is refused with the numbers where nothing fits', async () => {
    await expect(plan(100 * mib)).rejects.toThrow(
      /^To train this model takes 0\.\d GiB of memory at the least, and this service may use 0\.1 GiB\.$/,
    );
  });

  it('is that of the model that another is trained on, with what this one says of training', async () => {
    const root = mkdtempSync(join(tmpdir(), 'training-memory-'));
    try {
      await unpackFamily('sd15', root);
      const settings = { kind: 'lora' } as const;
      const of = (training: object) => plan(ample, { settings, drawn: { folder, training } });
      const [small, large] = [await of({ size: 256 }), await of({ size: 256, batch: 8 })];
      expect([small.size, large.bytes > small.bytes]).toEqual([256, true]);
      await expect(plan(ample, { drawn: { folder: join(root, 'model'), training: {} } })).rejects.toThrow(
        /^The model that "train_on" of its darkroom.json names has other shapes, such as that of \S+:/,
      );
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it('is that of its pictures where it goes on, in a form that fits here', async () => {
    const { bytes } = await plan(ample);
    const checkpoint = checkpointOf({ batch: 16, size: 512, form: 'plain' });
    expect(settingsOfCheckpoint(checkpoint)).toMatchObject({ size: 512 });
    const here = await plan(bytes / 2 - mib, { checkpoint });
    expect(here).toMatchObject({ size: 512, form: 'recomputed', note: null });
    await expect(plan(here.bytes - mib, { checkpoint })).rejects.toThrow('GiB of memory at the least');
    const small = checkpointOf({ batch: 16, size: 256, form: 'recomputed' });
    expect(await plan(ample, { checkpoint: small })).toMatchObject({ size: 256, form: 'recomputed' });
  });
});
