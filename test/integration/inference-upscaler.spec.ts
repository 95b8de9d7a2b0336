import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import sharp from 'sharp';
import { sizeOfPicture, TiledUpscaler, UpscalerError } from '@app/diffusion';
import type { RgbImage } from '../../apps/inference/src/engine/engine-protocol';
import { createInferenceBench } from '../support/inference';
import { ofSuite } from '../support/of-suite';
import { bytesOf } from '../support/stored-objects';
import { encodeUpscaler } from '../support/upscaler-model';
import { startWorker } from '../support/worker';

const root = join(__dirname, '..', '..');
const options: InferenceSession.SessionOptions = { executionProviders: ['cpu'], intraOpNumThreads: 1 };

/** Enlarges as often as the long edge allows. @returns the picture, and its number of tiles */
async function enlarge(upscaler: TiledUpscaler, source: RgbImage, maxLongEdge: number) {
  const enlarging = upscaler.enlarge(source, maxLongEdge);
  for (let tiles = 0; ; tiles++) {
    const { done, value } = await enlarging.next();
    if (done) return { enlarged: value, tiles };
  }
}

/** Smooth shapes with some noise, so that a shift or a visible seam would be detected. */
function picture(width: number, height: number): RgbImage {
  const data = new Uint8Array(width * height * 3);
  for (let i = 0; i < data.length; i++) {
    const [x, y] = [(i / 3) % width, Math.floor(i / 3 / width)];
    data[i] = 128 + 80 * Math.sin(x / 17 + (i % 3)) * Math.cos(y / 23) + ((i * 7919) % 41);
  }
  return { width, height, data };
}

/** The whole picture in one run. */
async function untiled(file: string, { width, height, data }: RgbImage): Promise<Uint8Array> {
  const size = width * height;
  const planes = Float32Array.from({ length: 3 * size }, (_, i) => data[(i % size) * 3 + Math.floor(i / size)] / 255);
  const session = await InferenceSession.create(file, options);
  const { y } = await session.run({ x: new Tensor('float32', planes, [1, 3, height, width]) });
  const values = y.data as Float32Array;
  await session.release();
  return Uint8Array.from({ length: 12 * size }, (_, i) =>
    Math.min(255, Math.max(0, Math.round(values[(i % 3) * 4 * size + Math.floor(i / 3)] * 255))),
  );
}

describe(TiledUpscaler.name, () => {
  let folder: string;
  const files = { free: '', fixed: '' };

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-upscaler-'));
    for (const [name, edge] of [['free'], ['fixed', 64]] as const) {
      files[name] = join(folder, `${name}.onnx`);
      writeFileSync(files[name], encodeUpscaler(edge));
    }
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each([
    ['free', 512, 300],
    ['free', 129, 128],
    ['free', 60, 40],
    ['fixed', 200, 150],
  ] as const)('leaves no seam: %s tiles over %i x %i equal one run over the whole', async (name, width, height) => {
    const source = picture(width, height);
    const upscaler = await TiledUpscaler.load(files[name], options);
    expect(upscaler.scale).toBe(2);
    const { enlarged } = await enlarge(upscaler, source, 2 * Math.max(width, height));
    await upscaler.release();
    expect(enlarged).toMatchObject({ width: 2 * width, height: 2 * height });
    const whole = await untiled(files.free, source);
    expect(new Set(whole).size).toBeGreaterThan(50);
    // If a picture is smaller than a tile, its border is extended and not zero, which affects the outer two pixels.
    const border = width < 128 && name === 'free' ? 4 : 0;
    let worst = 0;
    for (let y = 0; y < 2 * height - border; y++)
      for (let i = y * 2 * width * 3; i < ((y + 1) * 2 * width - border) * 3; i++)
        worst = Math.max(worst, Math.abs(enlarged.data[i] - whole[i]));
    expect(worst).toBeLessThanOrEqual(1);
  });

  it('enlarges as often as the long edge allows', async () => {
    const upscaler = await TiledUpscaler.load(files.free, options);
    expect((await enlarge(upscaler, picture(64, 32), 256)).enlarged).toMatchObject({ width: 256, height: 128 });
    const large = picture(200, 100);
    expect(await enlarge(upscaler, large, 256)).toEqual({ enlarged: large, tiles: 0 });
    await upscaler.release();
  });

  it('enlarges tile by tile', async () => {
    const upscaler = await TiledUpscaler.load(files.free, options);
    expect((await enlarge(upscaler, picture(512, 512), 1024)).tiles).toBe(25);
    await upscaler.release();
  });

  it('rejects a file that is not an upscaler, in one sentence', async () => {
    const load = (file: string): Promise<unknown> => TiledUpscaler.load(file, options).catch((error: unknown) => error);
    const other = await load(
      join(root, 'test', 'golden', 'models', 'tiny', 'sd15-diffusers', 'vae_decoder', 'model.onnx'),
    );
    expect(other).toBeInstanceOf(UpscalerError);
    const cut = join(folder, 'cut.onnx');
    writeFileSync(cut, encodeUpscaler().subarray(0, 500));
    expect(await load(cut)).toBeInstanceOf(UpscalerError);
  });

  it('does not call a file broken that cannot be read now', async () => {
    const refused = new Error(`Load model from ${files.free} failed:system error number 24`);
    const create = jest.spyOn(InferenceSession, 'create').mockRejectedValueOnce(refused);
    await expect(TiledUpscaler.load(files.free, options)).rejects.toBe(refused);
    create.mockRestore();
  });
});

describe('high resolution', () => {
  const modelsDir = mkdtempSync(join(tmpdir(), 'darkroom-models-'));
  const bench = ofSuite(() => createInferenceBench({ MODELS_DIR: modelsDir }));

  beforeAll(() => cpSync(join(root, 'models', 'shapes'), join(modelsDir, 'shapes'), { recursive: true }));

  afterAll(() => rmSync(modelsDir, { recursive: true, force: true }));

  it('makes a long edge of exactly 4096 pixels, and records the upscaler', async () => {
    await startWorker(bench);
    const draw = async () => {
      const { id } = await bench.addTask({
        highResolution: true,
        aspectRatio: 'portrait',
        ...sizeOfPicture(512, 'portrait'),
        outputFormat: 'jpeg',
        steps: 1,
      });
      return bench.terminated(id);
    };
    const stretched = await draw();
    expect(stretched).toMatchObject({ status: 'succeeded', upscaler: 'lanczos' });

    mkdirSync(join(modelsDir, 'upscalers'));
    writeFileSync(join(modelsDir, 'upscalers', 'double.onnx'), encodeUpscaler());
    const enlarged = await draw();
    expect(enlarged).toMatchObject({ status: 'succeeded', error: null });
    expect(enlarged.upscaler).toMatch(/^double@[0-9a-f]{12}$/);

    for (const { images } of [stretched, enlarged]) {
      expect(images[0]).toMatchObject({ width: 2731, height: 4096 });
      const file = await bytesOf(bench.storage, images[0].storageKey);
      expect(await sharp(file).metadata()).toMatchObject({ width: 2731, height: 4096, format: 'jpeg' });
    }
  });
});
