import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kindOf, Pipeline, type TextToImageRequest, type Trajectory } from '@app/diffusion';
import { type NamedTensor, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFolder, unpackTransformerModel } from '../support/families';
import { largestDifference } from '../support/golden';
import { expectRecorded, type PictureCase, pictureRequestOf } from '../support/picture-goldens';

/** Made by scripts/goldens/transformer_pictures.py and ernie_pictures.py. */
const recorded = ['transformers', 'ernie-image'].map((name) => join('test/golden', name));
const cases = recorded.flatMap((from) => JSON.parse(readFileSync(join(from, 'cases.json'), 'utf8')) as PictureCase[]);
const folder = mkdtempSync(join(tmpdir(), 'transformer-pictures-'));
const pipelines = new Map<string, Pipeline>();
const arrays = new Map<string, NamedTensor>();

beforeAll(async () => {
  for (const from of recorded) {
    await unpackFolder(from, join(folder, from));
    for (const [name, array] of await readSafetensors(join(folder, from, 'expected.safetensors')))
      arrays.set(name, array);
  }
});
afterAll(async () => {
  for (const loaded of pipelines.values()) await loaded.release();
  rmSync(folder, { recursive: true });
});

async function pipelineOf(family: string): Promise<Pipeline> {
  const path = join(folder, family);
  if (!pipelines.has(family)) await unpackTransformerModel(family, path);
  const loaded = pipelines.get(family) ?? (await Pipeline.load(path, cpu));
  pipelines.set(family, loaded);
  return loaded;
}

const requestFor = (one: PictureCase): Promise<TextToImageRequest> => pictureRequestOf(one, arrays);

const named = (name: string): PictureCase => cases.find((one) => one.name === name)!;

it.each(cases.map((one) => [one.name, one] as const))('diffusers draws the same: %s', async (name, one) => {
  const pipeline = await pipelineOf(one.family);
  const request = await requestFor(one);
  const { latents, images } = await pipeline.generate(request);
  const expected = await readValues(arrays.get(`${name}.latents`)!);
  expect(largestDifference(latents[0], expected)).toBeLessThan(1e-4);
  await expectRecorded(name, request, { images }, arrays);
});

/** Takes pictures to their ends side by side. */
async function run(pipeline: Pipeline, all: readonly Trajectory[]): Promise<Float32Array[]> {
  for (let left = all; (left = left.filter(({ done }) => !done)).length > 0;)
    await pipeline.step(left.filter((one) => kindOf(one) === kindOf(left[0])));
  return all.map(({ latents }) => latents);
}

it.each([
  ['flux2-klein-base', ['guided-short-negative', 'guided-long-negative', '64x64-4', 'scripts', '120-tokens']],
  ['ernie-image', ['guided', 'guided-no-negative', 'nothing', '96x64-8', 'long', 'scripts']],
  ['z-image', ['guided-short-negative', 'guided-long-negative', '64x64-4', '31-tokens', '33-tokens', '200-tokens']],
])('Pictures of %s are the same bits alone and beside others', async (family, names) => {
  const pipeline = await pipelineOf(family);
  const prepared = async (name: string): Promise<Trajectory> =>
    (await pipeline.prepare(await requestFor(named(`${family}-${name}`))))[0];
  const alone: Float32Array[] = [];
  for (const name of names) alone.push(...(await run(pipeline, [await prepared(name)])));
  const together = await run(pipeline, await Promise.all([...names, ...names].map(prepared)));
  expect(together).toStrictEqual([...alone, ...alone]);
});

it('A distilled model refuses a negative prompt with a sentence, and draws one row whatever the guidance', async () => {
  const pipeline = await pipelineOf('flux2-klein');
  const request = await requestFor(named('flux2-klein-64x64-2'));
  await expect(pipeline.generate({ ...request, negativePrompt: 'grey' })).rejects.toThrow(
    'It was distilled to draw without guidance.',
  );
  const [plain, guided] = [await pipeline.generate(request), await pipeline.generate({ ...request, guidanceScale: 7 })];
  expect(guided.latents).toStrictEqual(plain.latents);
});
