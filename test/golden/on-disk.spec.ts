import { link, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelFacts, TextToImageRequest } from '@app/diffusion';
import { withShapes } from '../support/onnx';
import { drawFrom, likeHub, moveWeights, placeModel, sizes, type TinyModel } from '../support/tiny-models';

const scheduler = 'scheduler/scheduler_config.json';

/** What a caller gets of a model folder: a picture, or one sentence. */
interface Row {
  what: string;
  base?: TinyModel;
  change?: (folder: string) => Promise<unknown>;
  request?: Partial<TextToImageRequest>;
  facts?: Partial<ModelFacts>;
  /** Whether to load it twice with a cache of optimised graphs, which must keep those of its three parts. */
  isCached?: boolean;
  /** Of the error; without one it is a picture. */
  sentence?: string;
}

const edit = async (file: string, change: object) =>
  writeFile(file, JSON.stringify({ ...(JSON.parse(await readFile(file, 'utf8')) as object), ...change }));
const redeclare = async (file: string, shapes: Parameters<typeof withShapes>[1]) =>
  writeFile(file, withShapes(await readFile(file), shapes));

const fixed = { sample: ['batch', 4, 8, 8], out_sample: ['batch', 4, 8, 8] };

const rows: Row[] = [
  { what: "diffusers' export with a PNDM scheduler", base: 'sd15-diffusers' },
  { what: "optimum's export, whose timestep has rank 0", base: 'sd21-optimum' },
  {
    what: 'SD 2.1 with 768 pixels and v-prediction',
    base: 'sd21-optimum',
    change: (folder) => edit(join(folder, 'unet/config.json'), { sample_size: 96 }),
    facts: { nativeSize: 768, predictionType: 'v_prediction' },
  },
  {
    what: 'sd-turbo: one step without guidance, spaced from the end',
    change: (folder) =>
      edit(join(folder, scheduler), { _class_name: 'EulerDiscreteScheduler', timestep_spacing: 'trailing' }),
    request: { numInferenceSteps: 1, guidanceScale: 1 },
  },
  { what: 'a U-Net distilled to take the guidance scale', base: 'lcm' },
  { what: 'a U-Net of int8', base: 'lcm-int8' },
  {
    what: 'a part above 2 GiB',
    base: 'lcm',
    change: (folder) => moveWeights(folder, 2 ** 31 + 4096),
  },
  {
    what: 'a part above 2 GiB whose graph repeats names',
    change: async (folder) => {
      const file = await open(join(folder, 'text_encoder/weights.pb'), 'r+');
      await file.truncate(2 ** 31 + 4096);
      await file.close();
    },
  },
  {
    what: 'parts under other names',
    base: 'sd15-diffusers',
    change: async (folder) => {
      for (const part of ['text_encoder', 'unet', 'vae_decoder'])
        await rename(join(folder, part, 'model.onnx'), join(folder, part, `${part}_fp32.onnx`));
    },
  },
  { what: "a folder of links into the hub's cache", base: 'sd15-diffusers', change: likeHub, isCached: true },
  { what: "optimum's folder of links into the hub's cache", base: 'sd21-optimum', change: likeHub, isCached: true },
  {
    what: 'weights that the graph itself keeps elsewhere',
    base: 'lcm',
    change: async (folder) => {
      await moveWeights(folder, 0);
      const file = join(folder, 'unet/model.onnx');
      const graph = await readFile(file);
      await link(join(folder, 'unet/model.onnx_data'), join(folder, 'onnx_weights'));
      await writeFile(
        file,
        Buffer.from(graph.toString('latin1').replaceAll('model.onnx_data', '../onnx_weights'), 'latin1'),
      );
    },
    sentence:
      '<folder>/unet/model.onnx is no whole ONNX model (the initializer "conv_in.weight" is in the file "../onnx_weights", which is not beside the model). Install it again, from a whole copy or from a new export.',
  },
  {
    what: 'graphs for one size, asked for that size',
    change: (folder) => redeclare(join(folder, 'unet/model.onnx'), fixed),
    facts: { fixedSize: sizes },
  },
  {
    what: 'graphs for one size, asked for another',
    change: (folder) => redeclare(join(folder, 'unet/model.onnx'), fixed),
    request: { height: 96 },
    sentence: 'The height is 96; this model was exported for a height of 64 pixels.',
  },
  {
    what: 'a VAE for one size, asked for another',
    change: (folder) => redeclare(join(folder, 'vae_decoder/model.onnx'), { latent_sample: ['batch', 4, 8, 16] }),
    sentence: 'The width is 64; this model was exported for a width of 128 pixels.',
  },
  {
    what: 'a U-Net and a VAE for different sizes',
    change: async (folder) => {
      await redeclare(join(folder, 'unet/model.onnx'), fixed);
      await redeclare(join(folder, 'vae_decoder/model.onnx'), { latent_sample: ['batch', 4, 16, 16] });
    },
    sentence:
      '<folder>/vae_decoder/model.onnx takes latents of height 16, and the U-Net gives 8. Take all files from one export of one model.',
  },
  {
    what: 'a U-Net for one length of prompts, given a longer one',
    change: (folder) => redeclare(join(folder, 'unet/model.onnx'), { encoder_hidden_states: ['batch', 77, 32] }),
    request: { prompt: 'a red circle '.repeat(40) },
    facts: { fixedChunks: 1 },
    sentence: 'The prompt takes 2 chunks of 75 tokens; at most 1 can be drawn.',
  },
  {
    what: 'a scheduler of a class that nobody knows',
    change: (folder) => edit(join(folder, scheduler), { _class_name: 'FooScheduler' }),
    sentence: 'The scheduler class "FooScheduler" is not supported.',
  },
  {
    what: 'that folder, asked for another scheduler',
    change: (folder) => edit(join(folder, scheduler), { _class_name: 'FooScheduler' }),
    request: { scheduler: 'euler' },
    facts: { scheduler: 'FooScheduler' },
  },
];

let scratch: string;
let folder: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'darkroom-disk-'));
  folder = join(scratch, 'model');
});
afterEach(() => rm(scratch, { recursive: true }));

/** The numbers of what a folder contains: one that is written again has another. */
const numbers = async (path: string) =>
  Promise.all((await readdir(path)).sort().map(async (name) => (await stat(join(path, name))).ino));

describe('what people have on disk', () => {
  it.each(rows)('$what', async ({ base = 'sd15-diffusers', change, request, facts, isCached, sentence }) => {
    await placeModel(base, folder);
    await change?.(folder);
    const outcome = drawFrom(folder, request);
    if (sentence !== undefined) return expect(outcome).rejects.toThrow(new Error(sentence.replace('<folder>', folder)));
    const { drawn, facts: found } = await outcome;
    expect(drawn.images[0]).toMatchObject(sizes);
    if (facts) expect(found).toMatchObject(facts);
    if (!isCached) return;
    const cache = { optimizedModelDir: join(scratch, 'optimized') };
    const fill = await drawFrom(folder, request, cache);
    const kept = await numbers(cache.optimizedModelDir);
    expect(kept).toHaveLength(3);
    expect((await drawFrom(folder, request, cache)).drawn.images).toStrictEqual(fill.drawn.images);
    expect(await numbers(cache.optimizedModelDir)).toEqual(kept);
  });
});
