import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AdapterUse,
  fitAdapter,
  inspectWeights,
  loadAdapter,
  readAdapter,
  readModelFolder,
  Pipeline,
} from '@app/diffusion';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { cpu } from '../support/cpu';
import { largestDifference } from '../support/golden';
import { encodeSafetensors } from '../support/safetensors';

const names = ['shapes', 'sd15-diffusers', 'sd21-optimum'] as const;
const folderOf = (name: (typeof names)[number]) =>
  join(__dirname, name === 'shapes' ? '../../models' : 'models/tiny', name);
const shapes = folderOf('shapes');

let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'darkroom-embedding-'));
});
afterAll(() => rm(scratch, { recursive: true }));

/** A file of the base's own embeddings of some words with one token each. */
async function embeddingFile(base: string, key: string, words: string[]): Promise<string> {
  const vocab = JSON.parse(await readFile(join(base, 'tokenizer/vocab.json'), 'utf8')) as Record<string, number>;
  const { tensors } = await readModelFolder(base);
  const table = tensors.get('text_encoder')!.get('text_model.embeddings.token_embedding.weight')!;
  const values = await readValues(table);
  const width = table.shape[1];
  const rows = words.map((word) => values.slice(vocab[`${word}</w>`] * width).slice(0, width));
  const path = join(scratch, `${words[0]}-${words.length}.safetensors`);
  const tensor = { shape: [words.length, width], values: rows.flatMap((row) => [...row]) };
  await writeFile(path, encodeSafetensors({ [key]: tensor }));
  return path;
}

async function latentsOf(base: string, texts: Record<string, AdapterUse[]>): Promise<Float32Array[]> {
  const pipeline = await Pipeline.load(base, cpu);
  const size = pipeline.facts.scaleFactor * 8;
  const drawn: Float32Array[] = [];
  for (const [prompt, adapters] of Object.entries(texts)) {
    const request = { prompt, width: size, height: size, numInferenceSteps: 1, guidanceScale: 5, seeds: [3], adapters };
    const trajectories = await pipeline.prepare(request);
    while (!trajectories[0].done) await pipeline.step(trajectories);
    drawn.push(trajectories[0].latents);
  }
  await pipeline.release();
  return drawn;
}

const use = async (base: string, file: string, token?: string): Promise<AdapterUse> => {
  const adapter = await loadAdapter(fitAdapter(await readAdapter(file), (await readModelFolder(base)).tensors));
  return { adapter, scale: 1, ...(token !== undefined && { token }) };
};

describe('A textual inversion', () => {
  it.each(names)('draws the meaning of its vectors with %s', async (name) => {
    const base = folderOf(name);
    const zwx = await use(base, await embeddingFile(base, 'emb_params', ['red', 'star']), 'Zwx');
    const [expected, actual, plain] = await latentsOf(base, {
      'a red star on a white background': [],
      'a zwx on a white background': [zwx],
      'a zwx upon a white background': [],
    });
    expect(largestDifference(actual, expected)).toBe(0);
    expect(largestDifference(plain, expected)).toBeGreaterThan(1e-4);
  });

  it('is drawn beside others, by the words of their files, and beside a LoRA', async () => {
    const [blue, heart] = [
      await use(shapes, await embeddingFile(shapes, 'zwx', ['blue'])),
      await use(shapes, await embeddingFile(shapes, 'qqq', ['heart'])),
    ];
    const robot = await use(shapes, join(__dirname, 'models/lora/zwx-robot-diffusers.safetensors'));
    const [expected, actual, plain] = await latentsOf(shapes, {
      'a blue heart': [robot],
      'a zwx qqq': [blue, robot, heart],
      'a blue  heart': [],
    });
    expect(largestDifference(actual, expected)).toBe(0);
    expect(largestDifference(plain, expected)).toBeGreaterThan(1e-4);
  });

  it('may have a word that is a part of others', async () => {
    const vocab = JSON.parse(await readFile(join(shapes, 'tokenizer/vocab.json'), 'utf8')) as Record<string, number>;
    const token = Object.keys(vocab).find((piece) => /^[a-z]{3,}$/.test(piece))!;
    const embedding = await use(shapes, await embeddingFile(shapes, 'emb_params', ['red', 'star']), token);
    const [actual, expected] = await latentsOf(shapes, { [`a ${token}`]: [embedding], 'a red star': [] });
    expect(largestDifference(actual, expected)).toBe(0);
  });

  it('of another width is refused, naming both shapes', async () => {
    const path = await embeddingFile(shapes, 'emb_params', ['red']);
    await expect(inspectWeights(path, folderOf('sd15-diffusers'))).rejects.toMatchObject({
      code: 'WeightsDoNotFitModel',
      message: `The embedding "emb_params" has the shape [1, 128]; the base model's token embeddings are [776, 32].`,
    });
  });

  it('that is too long for any text is refused', async () => {
    const path = await embeddingFile(shapes, 'emb_params', new Array<string>(76).fill('red'));
    await expect(inspectWeights(path, shapes)).rejects.toMatchObject({
      code: 'WeightsDoNotFitModel',
      message: "The embedding has 76 vectors; the base model's text window has room for 75.",
    });
  });
});
