import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  fitAdapter,
  foreseenBytes,
  inspectWeights,
  loadAdapter,
  type LoadedAdapter,
  ModelSession,
  Pipeline,
  readAdapter,
  readModelFolder,
  Trainer,
} from '@app/diffusion';
import { diffusersLayer, originalLayer } from '../../libs/diffusion/src/weights/original-transformer-names';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFolder, unpackTransformerModel } from '../support/families';

const folder = mkdtempSync(join(tmpdir(), 'transformer-training-'));
afterAll(() => rmSync(folder, { recursive: true }));

const settings = {
  ...{ steps: 4, seed: 3, rank: 2, batch: 2, learningRate: 1e-2, warmupSteps: 1, size: 64 },
  ...{ flips: true, captionDropout: 0.3, priorShare: 0.5 },
  priorPrompts: Array<string>(4).fill('a blue square'),
};
const pictureOf = (shade: number, caption: string) => {
  const data = new Uint8Array(3 * 64 * 64).map((_, i) => (i % 192 < 96 ? shade : 255 - shade));
  return { image: { width: 64, height: 64, data }, caption };
};
/** The second caption has more tokens than the others, so rows of a step differ in the length of their texts. */
const long = 'a red circle above a blue square beside a green triangle, '.repeat(3);
const pictures = [40, 80, 120, 160].map((shade, i) => pictureOf(shade, i === 1 ? long : 'a red circle'));

describe.each(['flux2-klein', 'z-image'])('A trainer of %s', (name) => {
  const model = join(folder, name);
  const file = join(folder, `${name}.safetensors`);
  beforeAll(() => unpackTransformerModel(name, model));

  it('goes on from a checkpoint to the same weights, byte for byte, which draw what their file draws', async () => {
    const whole = await Trainer.open(model, pictures, settings);
    await whole.step();
    const checkpoint = whole.checkpoint();
    while (!whole.done) await whole.step();
    const weights = whole.weights();
    const { loss, lossAtStart, drift } = await whole.gate();
    expect([loss, lossAtStart, drift].every((value) => value! > 0)).toBe(true);
    const resumed = await Trainer.resume(model, checkpoint);
    expect(Buffer.from(resumed.checkpoint()).equals(checkpoint)).toBe(true);
    while (!resumed.done) await resumed.step();
    expect(Buffer.from(resumed.weights()).equals(weights)).toBe(true);
    writeFileSync(file, weights);
    expect(await inspectWeights(file, model)).toEqual({ kind: 'lora', unmatched: 0 });
    const pipeline = await Pipeline.load(model, cpu);
    const draw = async (adapter?: LoadedAdapter) => {
      const adapters = adapter ? [{ adapter, scale: 1 }] : [];
      const request = { prompt: 'a circle', width: 64, height: 64, numInferenceSteps: 2, guidanceScale: 1, seeds: [1] };
      return (await pipeline.generate({ ...request, adapters })).images[0].data;
    };
    const read = await loadAdapter(fitAdapter(await readAdapter(file), (await readModelFolder(model)).tensors));
    const drawn = await draw(read);
    expect(drawn).toEqual(await draw(whole.adapter()));
    expect(drawn).not.toEqual(await draw());
    await Promise.all([pipeline.release(), whole.release(), resumed.release()]);
  });

  it('adapts layers that have names in the original files, and finds them again by these', async () => {
    const { denoiser } = await readModelFolder(model);
    const { layers } = denoiser.training!;
    const paths = [...denoiser.tensors.keys()].map((key) => key.replace(/\.weight$/, ''));
    const trained = paths.filter((path) => layers.all.test(path));
    expect(trained.length).toBeGreaterThan(0);
    const family = name === 'z-image' ? 'z-image' : 'flux2';
    for (const path of trained) {
      const { path: original, index, count } = originalLayer(path);
      const { paths, isSwapped } = diffusersLayer(family, original);
      expect([paths[index], paths.length, isSwapped]).toEqual([path, count, false]);
    }
  });

  it('learns pictures', async () => {
    const trainer = await Trainer.open(model, pictures, { ...settings, steps: 12, batch: 1, priorPrompts: [] });
    const before = await trainer.heldOutLoss();
    while (!trainer.done) await trainer.step();
    expect(await trainer.heldOutLoss()).toBeLessThan(before);
    await trainer.release();
  });
});

describe('A trainer of a transformer', () => {
  const model = join(folder, 'model');
  beforeAll(() => unpackTransformerModel('z-image', model));

  it('adapts the layers that diffusers has adapted in its scripts, and names them as it does', async () => {
    const trainer = await Trainer.open(model, pictures, { ...settings, priorPrompts: [] });
    const file = join(folder, 'names.safetensors');
    writeFileSync(file, trainer.weights());
    await trainer.release();
    await unpackFolder('test/golden/data/training', join(folder, 'recorded'));
    const recorded = [...(await readSafetensors(join(folder, 'recorded', 'z-image.safetensors'))).keys()];
    const expected = recorded.flatMap((key) => (/^[^/]+\.lora_[AB]$/.test(key) ? [`transformer.${key}.weight`] : []));
    expect([...(await readSafetensors(file)).keys()].sort()).toEqual(expected.sort());
  });

  it('opens a graph once at most for each length of the texts of a step, and goes on with the open one', async () => {
    const trainer = await Trainer.open(model, pictures, { ...settings, batch: 6, priorPrompts: [] });
    const open = jest.spyOn(ModelSession, 'open');
    for (let step = 0; step < 3; step++) {
      open.mockClear();
      await trainer.step();
      expect(open.mock.calls.length).toBeLessThanOrEqual(1);
    }
    open.mockRestore();
    await trainer.release();
  });

  it('refuses captions that are too long, and to train the text encoder', async () => {
    const [, ...others] = pictures;
    await expect(Trainer.open(model, [pictureOf(1, 'red '.repeat(600)), ...others], settings)).rejects.toThrow(
      /A caption takes \d+ tokens of this model; it reads at most 512/,
    );
    for (const wrong of [{ textEncoders: true }, { kind: 'textual_inversion' }] as const)
      await expect(Trainer.open(model, pictures, wrong)).rejects.toThrow(
        'The text encoder of this model is not trained',
      );
  });

  it('foresees memory for one picture of a batch, and less where values are computed again', async () => {
    const stepOf = async (settings: Parameters<typeof foreseenBytes>[1]) => (await foreseenBytes(model, settings)).step;
    const plain = await stepOf({ size: 512 });
    expect(await stepOf({ size: 512, batch: 8 })).toBe(plain);
    expect(await stepOf({ size: 768 })).toBeGreaterThan(plain);
    expect(await stepOf({ size: 512, form: 'recomputed' })).toBeLessThan(plain);
  });
});
