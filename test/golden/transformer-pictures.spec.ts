import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kindOf, Pipeline, type RgbImage, type TextToImageRequest, type Trajectory } from '@app/diffusion';
import { type NamedTensor, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import { unpackFolder, unpackTransformerModel } from '../support/families';
import { largestDifference } from '../support/golden';
import { expectRecorded, type PictureCase, pictureRequestOf } from '../support/picture-goldens';

/** Made by scripts/goldens/transformer_pictures.py, ernie_pictures.py and references.py. */
const recorded = ['transformers', 'ernie-image', 'references'].map((name) => join('test/golden', name));
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
  ['flux2-klein', ['references-1', 'references-2', 'references-turned', 'references-image', '96x64-4', '64x64-4']],
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

it.each([
  ['more than four', (all: RgbImage[]) => ({ references: [...all, all[0]] }), /There are 5 references; at most 4/],
  [
    'one of broken patches',
    ([first]: RgbImage[]) => ({ references: [{ ...first, width: first.width - 1 }] }),
    /A reference is of 79 x 64 pixels; this model looks at multiples of 16\./,
  ],
  [
    'one beside a mask',
    ([first]: RgbImage[]) => ({
      references: [first],
      image: { width: 96, height: 64, data: new Uint8Array(96 * 64 * 3) },
      mask: { width: 96, height: 64, values: new Uint8Array(96 * 64).fill(255) },
    }),
    /there is a mask/,
  ],
])('References are refused with a sentence: %s', async (_, change, message) => {
  const pipeline = await pipelineOf('flux2-klein');
  const request = await requestFor(named('flux2-klein-references-4'));
  const changed = { ...request, ...change([...request.references!]) };
  await expect(pipeline.generate(changed)).rejects.toThrow(message);
});

it('A model that looks at no pictures says so', async () => {
  const { references } = await requestFor(named('flux2-klein-references-1'));
  const request = { ...(await requestFor(named('z-image-turbo-64x64-2'))), ...(references && { references }) };
  const pipeline = await pipelineOf('z-image-turbo');
  await expect(pipeline.generate(request)).rejects.toThrow('It looks at no pictures beside the text.');
});
