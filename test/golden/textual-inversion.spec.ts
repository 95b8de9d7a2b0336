import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspectWeights, mergeLora, mergeTextualInversion, OnnxModel, StableDiffusionPipeline } from '@app/diffusion';
import { withTextualInversion } from '../../libs/diffusion/src/finetune/weights-file';
import { largestDifference } from '../support/golden';
import { KeptSessions } from '../support/kept-sessions';
import { encodeSafetensors } from '../support/safetensors';

const names = ['shapes', 'sd15-diffusers', 'sd21-optimum', 'sd15-fp16'] as const;
const source = (name: string) => join(__dirname, name === 'shapes' ? '../../models' : 'models/tiny', name);

const sessions = new KeptSessions();
/**
 * Copies of the models where merges are made, so that merges link their files, and have most graphs in common with
 * them.
 */
let bases: string;
const baseOf = (name: (typeof names)[number]) => join(bases, name);
let shapes: string;
let folder: string;
beforeAll(async () => {
  bases = await mkdtemp(join(tmpdir(), 'darkroom-embedding-bases-'));
  for (const name of names) await cp(source(name), baseOf(name), { recursive: true });
  shapes = baseOf('shapes');
});
afterAll(async () => {
  await sessions.release();
  await rm(bases, { recursive: true });
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-embedding-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** The base's own embeddings of some words with one token each. */
async function embeddingsOf(base: string, words: string[]): Promise<{ shape: number[]; values: number[] }> {
  const vocab = JSON.parse(await readFile(join(base, 'tokenizer/vocab.json'), 'utf8')) as Record<string, number>;
  const model = OnnxModel.open(join(base, 'text_encoder/model.onnx'));
  const table = [...model.initializers.values()].find(({ name }) =>
    name.startsWith('embeddings.token_embedding.weight'),
  )!;
  const values = await model.readFloats(table);
  const width = table.dims[1];
  const rows = words.map((word) => values.slice(vocab[`${word}</w>`] * width).slice(0, width));
  return { shape: [words.length, width], values: rows.flatMap((row) => [...row]) };
}

async function embeddingFile(base: string, key: string, words: string[]): Promise<string> {
  const path = join(folder, `${words[0]}-${words.length}.safetensors`);
  await writeFile(path, encodeSafetensors({ [key]: await embeddingsOf(base, words) }));
  return path;
}

/** By folder; no folder is used by two tests, except those of the models. */
const pipelines = new Map<string, Promise<StableDiffusionPipeline>>();

async function latentsOf(model: string, prompt: string): Promise<Float32Array> {
  const loading = pipelines.get(model) ?? StableDiffusionPipeline.load(model, sessions.options);
  pipelines.set(model, loading);
  const pipeline = await loading;
  const size = pipeline.facts.vaeScaleFactor * 8;
  const request = { prompt, width: size, height: size, numInferenceSteps: 1, guidanceScale: 5, seeds: [3] };
  const trajectories = await pipeline.prepare(request);
  while (!trajectories[0].done) await pipeline.step(trajectories);
  return trajectories[0].latents;
}

describe('mergeTextualInversion', () => {
  it.each(names)('draws the meaning of its vectors with %s', async (name) => {
    const baseFolder = baseOf(name);
    const embedding = await embeddingFile(baseFolder, 'emb_params', ['red', 'star']);
    const merged = join(folder, 'merged');
    expect(await mergeTextualInversion({ baseFolder, embedding, token: 'Zwx', folder: merged })).toBe(2);
    const [expected, actual, plain] = [
      await latentsOf(baseFolder, 'a red star on a white background'),
      await latentsOf(merged, 'a zwx on a white background'),
      await latentsOf(baseFolder, 'a zwx on a white background'),
    ];
    expect(largestDifference(actual, expected)).toBe(0);
    expect(largestDifference(plain, expected)).toBeGreaterThan(1e-4);
  });

  it('replaces a word of the same name, and can be combined with others and with a LoRA', async () => {
    const first = await embeddingFile(shapes, 'zwx', ['red', 'star', 'moon']);
    const second = await embeddingFile(shapes, 'zwx', ['blue']);
    const third = await embeddingFile(shapes, 'qqq', ['heart']);
    const [one, two, merged] = ['one', 'two', 'three'].map((name) => join(folder, name));
    await mergeTextualInversion({ baseFolder: shapes, embedding: first, token: 'zwx', folder: one });
    await mergeTextualInversion({ baseFolder: one, embedding: second, token: 'zwx', folder: two });
    await mergeTextualInversion({ baseFolder: two, embedding: third, token: 'qqq', folder: merged });
    expect(largestDifference(await latentsOf(merged, 'a zwx qqq'), await latentsOf(shapes, 'a blue heart'))).toBe(0);

    const lora = join(__dirname, 'models/lora/zwx-robot-diffusers.safetensors');
    const [both, alone] = ['both', 'alone'].map((name) => join(folder, name));
    await mergeLora({ baseFolder: merged, lora, scale: 1, folder: both });
    await mergeLora({ baseFolder: shapes, lora, scale: 1, folder: alone });
    const [actual, expected] = [await latentsOf(both, 'a zwx qqq'), await latentsOf(alone, 'a blue heart')];
    expect(largestDifference(actual, expected)).toBe(0);
  });

  it('accepts a token that is a part of other words', async () => {
    const vocab = JSON.parse(await readFile(join(shapes, 'tokenizer/vocab.json'), 'utf8')) as Record<string, number>;
    const token = Object.keys(vocab).find((piece) => /^[a-z]{3,}$/.test(piece))!;
    const embedding = await embeddingFile(shapes, 'emb_params', ['red', 'star']);
    const merged = join(folder, 'merged');
    await mergeTextualInversion({ baseFolder: shapes, embedding, token, folder: merged });
    const [actual, expected] = [await latentsOf(merged, `a ${token}`), await latentsOf(shapes, 'a red star')];
    expect(largestDifference(actual, expected)).toBe(0);
  });

  it.each(['', 'two words', 'a\tb'])('rejects the token %j', async (token) => {
    const embedding = await embeddingFile(shapes, 'emb_params', ['red']);
    const options = { baseFolder: shapes, embedding, token, folder: join(folder, 'merged') };
    await expect(mergeTextualInversion(options)).rejects.toThrow(RangeError);
  });
});

describe('inspectWeights', () => {
  it.each([
    ['<zwx>', 'diffusers'],
    ['emb_params', 'a1111'],
  ])('accepts an embedding with the key %s', async (key, format) => {
    const path = await embeddingFile(shapes, key, ['red', 'star']);
    const expected = { kind: 'textual_inversion', format, modules: 0, rank: [], tokens: 2 };
    await expect(inspectWeights(path, shapes)).resolves.toEqual(expected);
    await expect(withTextualInversion(path, (embedding) => embedding)).resolves.toMatchObject({
      format,
      count: 2,
      width: 128,
    });
  });

  it('rejects one of another width, naming both shapes', async () => {
    const path = await embeddingFile(shapes, 'emb_params', ['red']);
    await expect(inspectWeights(path, baseOf('sd15-diffusers'))).rejects.toMatchObject({
      code: 'WeightsDoNotFitModel',
      message: "The embedding has the shape [1, 128]; the base model's token embeddings are [776, 32].",
    });
  });

  it('rejects one that is too long for any text', async () => {
    const path = await embeddingFile(shapes, 'emb_params', new Array<string>(76).fill('red'));
    await expect(inspectWeights(path, shapes)).rejects.toMatchObject({
      code: 'WeightsDoNotFitModel',
      message: "The embedding has 76 vectors; the base model's text window has room for 75.",
    });
  });
});
