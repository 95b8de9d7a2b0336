import { cp, mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  mergeLora,
  type MergeLoraOptions,
  OnnxModel,
  OnnxModelError,
  StableDiffusionPipeline,
  type TextToImageRequest,
} from '@app/diffusion';
import { makeFolderBesideModels } from '../support/folder-beside-models';
import { largestDifference, loadGolden, loadGoldenTable, recordGolden } from '../support/golden';
import { KeptSessions } from '../support/kept-sessions';
import { denoise, type PipelineCase, readPng } from '../support/pipeline-goldens';
import { psnr } from '../support/psnr';
import { encodeSafetensors, type TensorToWrite } from '../support/safetensors';

interface LoraCase extends PipelineCase {
  scale: number;
}

const bundled = join(__dirname, '../../models/shapes');
const tinyNames = ['sd15-diffusers', 'sd21-optimum', 'sd15-fp16'];
const robot = (format: string) => join(__dirname, 'models/lora', `zwx-robot-${format}.safetensors`);
/** Final latents within 1e-4 of diffusers', pictures at 55 dB or more. */
const tolerance = { latents: 1e-4, decibels: 55 };

const sessions = new KeptSessions();
/** A folder for each test, and one for all of them. */
let scratch: string;
let shared: string;
/**
 * Copies of the models where merges are made, so that merges link their files, and have a decoder in common with them.
 */
let shapes: string;
const tiny = (name: string) => join(shared, name);
/** The folder beside the model, of the test that needs one. */
let beside: string | undefined;
const makeFolder = () => mkdtemp(join(tmpdir(), 'darkroom-lora-'));
beforeAll(async () => {
  shared = await makeFolder();
  shapes = join(shared, 'shapes');
  await cp(bundled, shapes, { recursive: true });
  for (const name of tinyNames) await cp(join(__dirname, 'models/tiny', name), tiny(name), { recursive: true });
});
beforeEach(async () => {
  scratch = await makeFolder();
});
afterEach(async () => {
  await rm(scratch, { recursive: true });
  if (beside !== undefined) await rm(beside, { recursive: true });
  beside = undefined;
});
afterAll(async () => {
  await sessions.release();
  await rm(shared, { recursive: true });
});

/** Merges into a folder that no test changes, so that equal merges are made only once. */
const merges = new Map<string, Promise<{ folder: string; merged: number }>>();
function merge(options: Omit<MergeLoraOptions, 'folder'>) {
  const key = JSON.stringify(options);
  const make = async (folder: string) => ({ folder, merged: await mergeLora({ ...options, folder }) });
  const made = merges.get(key) ?? make(join(shared, `merge-${merges.size}`));
  merges.set(key, made);
  return made;
}

async function draw(folder: string, request: TextToImageRequest) {
  const pipeline = await StableDiffusionPipeline.load(folder, sessions.options);
  try {
    return await pipeline.generate(request);
  } finally {
    await pipeline.release();
  }
}

/** Values of all float32 and float16 weights of a part, by name; each is read once. */
const parts = new Map<string, Promise<Map<string, Float32Array>>>();
function readPart(folder: string, part: string): Promise<Map<string, Float32Array>> {
  const path = join(folder, part);
  const read = parts.get(path) ?? readWeights(path);
  parts.set(path, read);
  return read;
}

async function readWeights(path: string): Promise<Map<string, Float32Array>> {
  const model = OnnxModel.open(join(path, 'model.onnx'));
  const weights = new Map<string, Float32Array>();
  for (const initializer of model.initializers.values()) {
    if (initializer.dataType === 1 || initializer.dataType === 10)
      weights.set(initializer.name, await model.readFloats(initializer));
  }
  return weights;
}

describe('mergeLora', () => {
  // At scale 0 nothing is merged; that one is for the story, test/e2e/story.spec.ts.
  const cases = loadGoldenTable<LoraCase[]>('lora/pipeline').filter(({ scale }) => scale > 0);
  const arrays = loadGolden('lora/pipeline');

  describe('on the bundled model', () => {
    // Equal pictures have no finite ratio; 100 dB is beyond what eight bits can show.
    const worst = { latents: 0, decibels: 100 };
    afterAll(() => {
      recordGolden('lora latents', cases.length, worst.latents, tolerance.latents);
      recordGolden(
        'lora images (-dB)',
        cases.filter(({ only_latents }) => !only_latents).length,
        -worst.decibels,
        -tolerance.decibels,
      );
    });

    it.each(cases.map((one) => [`"${one.prompt}" at scale ${one.scale}, ${one.width} x ${one.height}`, one] as const))(
      'draws %s as diffusers does',
      async (_, one) => {
        const { index, scale, only_latents } = one;
        const { folder } = await merge({ baseFolder: shapes, lora: robot('diffusers'), scale });
        const pipeline = await StableDiffusionPipeline.load(folder, sessions.options);
        const trajectory = await denoise(pipeline, one);
        const error = largestDifference(trajectory.latents, arrays.float32(`${index}.latents`));
        worst.latents = Math.max(worst.latents, error);
        expect(error).toBeLessThanOrEqual(tolerance.latents);
        if (only_latents) return;
        const expected = await readPng(join(__dirname, 'data/lora', `${index}.png`));
        const decibels = psnr(await pipeline.decode(trajectory), expected);
        worst.decibels = Math.min(worst.decibels, decibels);
        expect(decibels).toBeGreaterThanOrEqual(tolerance.decibels);
      },
    );

    it("changes the same weights for diffusers' and for kohya's keys, and no others", async () => {
      const options = { baseFolder: shapes, scale: 1 };
      const [one, other] = [
        await merge({ ...options, lora: robot('diffusers') }),
        await merge({ ...options, lora: robot('kohya') }),
      ];
      let changed = 0;
      for (const part of ['unet', 'text_encoder']) {
        const [base, fromDiffusers, fromKohya] = await Promise.all(
          [shapes, one.folder, other.folder].map((folder) => readPart(folder, part)),
        );
        expect([...fromDiffusers.keys()]).toEqual([...base.keys()]);
        for (const [name, values] of base) {
          // kohya's file has twice the factor and half the alpha, each rounded to float16.
          expect(largestDifference(fromKohya.get(name)!, fromDiffusers.get(name)!)).toBeLessThan(1e-6);
          if (largestDifference(fromDiffusers.get(name)!, values) > 1e-6) changed++;
        }
      }
      expect(changed).toBe(79);
      expect([one.merged, other.merged]).toEqual([79, 79]);
    });

    it('writes only the changed weights, and links the rest', async () => {
      const folder = (beside = await makeFolderBesideModels('lora'));
      await mergeLora({ baseFolder: bundled, lora: robot('kohya'), scale: 1, folder });
      const [graph, base, original] = await Promise.all(
        [join(folder, 'unet/model.onnx'), join(folder, 'unet/base.weights'), join(bundled, 'unet/model.onnx')].map(
          (path) => stat(path),
        ),
      );
      expect(graph.size).toBeLessThan(original.size / 20);
      expect(base.size).toBe(original.size);
      expect(base.nlink).toBeGreaterThan(1);
      expect(await readdir(join(folder, 'unet'))).toEqual([
        'base.weights',
        'changed.weights',
        'config.json',
        'model.onnx',
      ]);
      const untouched = join('vae_decoder', 'model.onnx');
      expect((await stat(join(folder, untouched))).size).toBe((await stat(join(bundled, untouched))).size);
    });

    it('merges onto a merged folder', async () => {
      const options = { lora: robot('diffusers') };
      const half = await merge({ ...options, baseFolder: shapes, scale: 0.5 });
      const twice = await merge({ ...options, baseFolder: half.folder, scale: 0.5 });
      const once = await merge({ ...options, baseFolder: shapes, scale: 1 });
      const [expected, actual] = [await readPart(once.folder, 'unet'), await readPart(twice.folder, 'unet')];
      for (const [name, values] of expected) expect(largestDifference(actual.get(name)!, values)).toBeLessThan(1e-6);
    });
  });

  /**
   * Kinds of layers in the tiny models: nodes whose weight lost its name, a non-square layer, a kernel, the text
   * encoder.
   */
  const layers = [
    { key: 'unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q', weight: [32, 32], part: 'unet' },
    { key: 'unet.mid_block.attentions.0.transformer_blocks.0.ff.net.2', weight: [32, 128], part: 'unet' },
    { key: 'unet.down_blocks.0.resnets.0.conv1', weight: [16, 16, 3, 3], part: 'unet' },
    { key: 'text_encoder.text_model.encoder.layers.0.self_attn.v_proj', weight: [32, 32], part: 'text_encoder' },
  ];
  const rank = 2;
  const wave = (shape: number[], seed: number): TensorToWrite => ({
    shape,
    values: Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => Math.fround(Math.sin(seed + i * 0.7) / 8)),
  });
  const tensors = Object.fromEntries(
    layers.flatMap(({ key, weight: [out, input, ...kernel] }, i) => [
      [`${key}.lora_A.weight`, wave([rank, input, ...kernel], i)],
      [`${key}.lora_B.weight`, wave([out, rank, ...kernel.map(() => 1)], i + 10)],
    ]),
  );
  let lora: string;
  beforeAll(async () => {
    lora = join(shared, 'lora.safetensors');
    await writeFile(lora, encodeSafetensors(tensors));
  });

  it.each([
    ['cut short', (path: string) => truncate(path, 100), /fewer or more bytes in weights\.pb/],
    ['missing', (path: string) => rm(path), /weights\.pb, which cannot be read \(ENOENT\)/],
  ])('rejects a base whose external file is %s', async (_, spoil, sentence) => {
    const base = join(scratch, 'base');
    await cp(tiny('sd15-diffusers'), base, { recursive: true });
    await spoil(join(base, 'unet/weights.pb'));
    const own = join(scratch, 'lora.safetensors');
    const factor = { shape: [1, 32], values: new Array<number>(32).fill(0) };
    const key = 'unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q';
    const up = { ...factor, shape: [32, 1] };
    await writeFile(own, encodeSafetensors({ [`${key}.lora_A.weight`]: factor, [`${key}.lora_B.weight`]: up }));
    const merging = mergeLora({ baseFolder: base, lora: own, scale: 1, folder: join(scratch, 'merge') });
    await expect(merging).rejects.toThrow(OnnxModelError);
    await expect(merging).rejects.toThrow(sentence);
  });

  it.each([NaN, Infinity])('rejects the scale %d', async (scale) => {
    await expect(mergeLora({ baseFolder: tiny('sd15-fp16'), lora, scale, folder: scratch })).rejects.toThrow(
      RangeError,
    );
  });

  describe.each([
    ['sd15-diffusers', 'float32 in an external file', 1e-6],
    ['sd21-optimum', 'float32 in an external file', 1e-6],
    ['sd15-fp16', 'float16 in the graph', 2e-4],
  ])('on %s (%s)', (name, _, precision) => {
    const sites: Record<string, { node: string; transposed: boolean }> = {
      [layers[0].key]: { node: '/down_blocks.1/attentions.0/transformer_blocks.0/attn1/to_q/MatMul', transposed: true },
      [layers[1].key]: { node: '/mid_block/attentions.0/transformer_blocks.0/ff/net.2/MatMul', transposed: true },
      [layers[2].key]: { node: '/down_blocks.0/resnets.0/conv1/Conv', transposed: false },
      [layers[3].key]: { node: '/encoder/layers.0/self_attn/v_proj/MatMul', transposed: true },
    };
    const scale = 0.8;

    it.each(layers)('adds up x down to $key', async ({ key, part, weight: [out, ...rest] }) => {
      const { folder } = await merge({ baseFolder: tiny(name), lora, scale });
      const { node, transposed } = sites[key];
      const model = OnnxModel.open(join(tiny(name), part, 'model.onnx'));
      const stored = model.nodes.find((one) => one.name === node)!.inputs[1];
      const [before, after] = [await readPart(tiny(name), part), await readPart(folder, part)];
      const [up, down] = ['B', 'A'].map((letter) => tensors[`${key}.lora_${letter}.weight`].values);
      const columns = rest.reduce((a, b) => a * b);
      const expected = before.get(stored)!.slice();
      for (let row = 0; row < out; row++)
        for (let column = 0; column < columns; column++)
          for (let r = 0; r < rank; r++)
            expected[transposed ? column * out + row : row * columns + column] +=
              scale * up[row * rank + r] * down[r * columns + column];
      expect(largestDifference(before.get(stored)!, expected)).toBeGreaterThan(1e-3);
      expect(largestDifference(after.get(stored)!, expected)).toBeLessThanOrEqual(precision);
    });

    it('draws another picture, and the same one at scale 0', async () => {
      const request = {
        prompt: 'a red circle',
        width: 64,
        height: 64,
        numInferenceSteps: 2,
        guidanceScale: 5,
        seeds: [1],
      };
      const [base, none, full] = [
        await draw(tiny(name), request),
        await draw((await merge({ baseFolder: tiny(name), lora, scale: 0 })).folder, request),
        await draw((await merge({ baseFolder: tiny(name), lora, scale: 4 })).folder, request),
      ];
      expect(largestDifference(none.latents[0], base.latents[0])).toBeLessThan(1e-6);
      expect(largestDifference(full.latents[0], base.latents[0])).toBeGreaterThan(1e-3);
    });
  });
});
