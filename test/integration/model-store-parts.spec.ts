import { statSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pipeline, precisionOf, type RgbImage } from '@app/diffusion';
import { type ModelProgress, ModelStore } from '@app/model-store';
import type { NamedTensors } from '../../libs/diffusion/src/weights/named-tensor';
import { readPart, readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { cpu } from '../support/cpu';
import {
  asOriginal,
  prefixed,
  type StoredTensor,
  type StoredTensors,
  storedFile,
  storedPart,
  unpackWithTokenizer,
  writePartFiles,
  writeStored,
} from '../support/part-files';
import { encodeGguf } from '../support/gguf';
import { HubServer } from '../support/hub-server';
import { ggufOfQwen3, inBlocks, inFloat8, withForms } from '../support/quantised-files';
import { psnr } from '../support/psnr';

type Kind = 'flux2' | 'z-image';
const models = {
  'flux2-klein': 'flux2',
  'z-image': 'z-image',
  'z-image-turbo': 'z-image',
} as const;
type Name = keyof typeof models;

let sources: string;
let folder: string;
let store: ModelStore;
const pictures = new Map<string, RgbImage>();

beforeAll(async () => {
  sources = await mkdtemp(join(tmpdir(), 'parts-'));
  for (const name of Object.keys(models)) await unpackWithTokenizer(name, source(name));
});
afterAll(() => rm(sources, { recursive: true }));
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'));
  store = new ModelStore(folder);
});
afterEach(() => rm(folder, { recursive: true }));

const left = async (): Promise<string[]> => (await readdir(folder)).sort();
const source = (name: string): string => join(sources, name);
const filesOf = (name: Name, file = `${name}.safetensors`) => writePartFiles(source(name), models[name], file);

async function draw(path: string): Promise<RgbImage> {
  const pipeline = await Pipeline.load(path, cpu);
  const request = {
    prompt: 'a red fox, 水彩',
    width: 64,
    height: 64,
    numInferenceSteps: 2,
    guidanceScale: 3,
    seeds: [1],
  };
  const { images } = await pipeline.generate(request);
  await pipeline.release();
  return images[0];
}

/** Expects the picture of the folder of diffusers that the files were made of. */
async function expectSame(name: Name, installed: string): Promise<void> {
  const wanted = pictures.get(name) ?? (await draw(source(name)));
  pictures.set(name, wanted);
  expect(psnr(await draw(installed), wanted)).toBeGreaterThan(60);
}

describe('A model in files of its parts', () => {
  it.each(['flux2-klein', 'z-image'] as const)('draws what its folder of diffusers draws: %s', async (name) => {
    const { transformer, textEncoder, vae } = await filesOf(name);
    const model = await store.add(transformer, { as: 'parts', textEncoder, vae });
    const steps = name === 'z-image' ? 50 : 4;
    expect(model).toMatchObject({ precision: 'bfloat16', source: transformer, defaults: { steps } });
    expect(await left()).toEqual(['.parts.darkroom-model.json', 'parts']);
    await expectSame(name, model.folder);
    expect(await store.verify('parts')).toMatchObject({ ok: true, recorded: true });
  });

  it('may be one file of all parts', async () => {
    const file = join(sources, 'all.safetensors');
    const parts = [
      prefixed('model.diffusion_model.', asOriginal('z-image', await storedPart(source('z-image'), 'transformer'))),
      prefixed('text_encoders.qwen3_4b.transformer.', await storedPart(source('z-image'), 'text_encoder')),
      prefixed('vae.', asOriginal('vae', await storedPart(source('z-image'), 'vae'))),
    ];
    await writeStored(file, new Map(parts.flatMap((part) => [...part])));
    const model = await store.add(file, { as: 'all', isDistilled: false });
    expect(model.defaults).toMatchObject({ steps: 50 });
    await expectSame('z-image', model.folder);
  });

  it('has the text encoder of an installed model, and one file for both', async () => {
    const klein = await filesOf('flux2-klein');
    const zImage = await filesOf('z-image', 'z_image_turbo.safetensors');
    await store.add(klein.transformer, { as: 'klein', textEncoder: klein.textEncoder, vae: klein.vae });
    await expect(store.add(zImage.transformer, { as: 'zit' })).rejects.toMatchObject({
      code: 'InvalidSource',
      message: expect.stringMatching(/without its autoencoder \(vae\).+Give its file with "--vae"/) as string,
    });
    const model = await store.add(zImage.transformer, { as: 'zit', vae: zImage.vae });
    expect(model.defaults).toMatchObject({ steps: 8 });
    const [one, other] = ['klein', 'zit'].map((name) => statSync(join(folder, name, 'text_encoder/model.safetensors')));
    expect(other.ino).toBe(one.ino);
    await expectSame('z-image-turbo', model.folder);
    await store.remove('klein');
    expect(await store.verify('zit')).toMatchObject({ ok: true });
  });

  it('has no text encoder in int8 where another precision is wanted, and names its model', async () => {
    const { transformer, vae } = await filesOf('z-image-turbo');
    await store.add(source('flux2-klein'), { as: 'klein', precision: 'int8' });
    for (const wish of [{ precision: 'bfloat16' }, { isForGpu: true }] as const)
      await expect(store.add(transformer, { as: 'zit', vae, ...wish })).rejects.toMatchObject({
        code: 'InvalidSource',
        message: expect.stringMatching(
          /of the installed model klein fits, but is in int8\. Give .+ "--text-encoder", or "--precision int8"\.$/,
        ) as string,
      });
    await store.add(transformer, { as: 'zit', vae, precision: 'int8' });
    const [one, other] = ['klein', 'zit'].map((name) => statSync(join(folder, name, 'text_encoder/model.safetensors')));
    expect(other.ino).toBe(one.ino);
  });

  it('may lie on the hub, and what was downloaded is kept while another part is missing', async () => {
    const { transformer, textEncoder, vae } = await filesOf('flux2-klein', 'flux-2-klein-4b.safetensors');
    const hub = await HubServer.start();
    hub.publish('split_files/flux-2-klein-4b.safetensors', await readFile(transformer));
    hub.publish('qwen_3_4b.safetensors', await readFile(textEncoder));
    const fromHub = new ModelStore(folder, { endpoint: hub.url });
    const source = `${hub.repository}/split_files/flux-2-klein-4b.safetensors`;
    await expect(fromHub.add(source, { as: 'klein', vae })).rejects.toThrow('Give its file with "--text-encoder".');
    const downloads = (): string[] => hub.requests.filter(({ host }) => host === 'store').map(({ file }) => file);
    expect(downloads()).toHaveLength(1);
    const model = await fromHub.add(source, {
      as: 'klein',
      textEncoder: `${hub.repository}/qwen_3_4b.safetensors`,
      vae,
    });
    expect(downloads()).toHaveLength(2);
    expect(model).toMatchObject({ source: `${source}@${hub.commit}`, defaults: { steps: 4 } });
    expect(await left()).toEqual(['.klein.darkroom-model.json', 'klein']);
    await hub.close();
  });
});

describe('Quantised files', () => {
  const plain = async (kind: Kind, part: 'transformer' | 'text_encoder'): Promise<NamedTensors> =>
    readPart(join(source(kind === 'flux2' ? 'flux2-klein' : kind), part));

  it('of GGUF draw what their numbers draw in float32', async () => {
    const { transformer: file, vae } = await filesOf('flux2-klein');
    const [transformer, textEncoder] = [file, `${file}.encoder`].map((path) => `${path}.gguf`);
    // Blocks are of the tensors that programs have, with what is fused in them.
    const ofTransformer = await inBlocks(await readSafetensors(file), 'Q8_0');
    const ofTexts = await inBlocks(await plain('flux2', 'text_encoder'), 'Q4_0');
    await writeFile(transformer, encodeGguf(ofTransformer.blocks));
    await writeFile(textEncoder, ggufOfQwen3(ofTexts.blocks));
    const model = await store.add(transformer, { as: 'blocks', textEncoder, vae });
    expect(model.precision).toBe('float32');
    await writeStored(file, ofTransformer.values);
    await writeStored(`${file}.encoder.safetensors`, ofTexts.values);
    const wanted = await store.add(file, { as: 'wanted', textEncoder: `${file}.encoder.safetensors`, vae });
    const picture = await draw(wanted.folder);
    expect(psnr(await draw(model.folder), picture)).toBeGreaterThan(60);
    const small = await store.add(transformer, { as: 'small', textEncoder, vae, precision: 'int8' });
    expect(small.precision).toBe('int8');
    expect(precisionOf(await readPart(join(small.folder, 'text_encoder')))).toBe('int8');
    // What is written anyway has two bytes for a GPU; a folder stays as it is.
    const forGpu = await store.add(transformer, { as: 'gpu', textEncoder, vae, isForGpu: true });
    expect(forGpu.precision).toBe('bfloat16');
    const ofFolder = await store.add(wanted.folder, { as: 'gpu-folder', isForGpu: true });
    expect(ofFolder).toMatchObject({ precision: 'float32', isLinked: true });
  });

  it('of GGUF say what their text encoder computes with', async () => {
    const { transformer, textEncoder, vae } = await filesOf('flux2-klein');
    const { blocks } = await inBlocks(await plain('flux2', 'text_encoder'), 'Q8_0');
    const changed = { 'qwen3.rope.freq_base': 5e5, 'qwen3.attention.layer_norm_rms_epsilon': 2 ** -16 };
    await writeFile(`${textEncoder}.gguf`, ggufOfQwen3(blocks, changed));
    const model = await store.add(transformer, { as: 'texts', textEncoder: `${textEncoder}.gguf`, vae });
    const config = await readFile(join(model.folder, 'text_encoder/config.json'), 'utf8');
    expect(JSON.parse(config)).toMatchObject({ rope_theta: 5e5, rms_norm_eps: 2 ** -16 });
  });

  it.each(['bfloat16', 'float32', 'int8'] as const)(
    'of float8 without scales get the precision: %s',
    async (precision) => {
      const { transformer, textEncoder, vae } = await filesOf('flux2-klein');
      for (const file of [transformer, textEncoder])
        await writeStored(file, await inFloat8(await readSafetensors(file), undefined, false));
      const model = await store.add(transformer, { as: 'float8', textEncoder, vae, precision });
      expect(model.precision).toBe(precision);
      expect(precisionOf(await readPart(join(model.folder, 'text_encoder')))).toBe(precision);
    },
  );

  it.each([
    ['scale_weight', false],
    ['weight_scale', true],
  ])('of float8 are multiplied by their scales: %s', async (scaleName, perRow) => {
    const { transformer, textEncoder, vae } = await filesOf('flux2-klein');
    await writeStored(transformer, await inFloat8(await readSafetensors(transformer), scaleName, perRow));
    const encoder = await inFloat8(await plain('flux2', 'text_encoder'), scaleName, perRow);
    await writeStored(textEncoder, encoder);
    const model = await store.add(transformer, { as: 'float8', textEncoder, vae, precision: 'bfloat16' });
    expect(model.precision).toBe('bfloat16');
    await expectSame('flux2-klein', model.folder);
  });

  it.each([true, false])('of int8 stay as they are, rotated or not: %s', async (convrot) => {
    const name = 'z-image-turbo';
    const { transformer } = await filesOf(name);
    const ours = await store.add(source(name), { as: 'ours', precision: 'int8' });
    const path = join(ours.folder, 'transformer/diffusion_pytorch_model.safetensors');
    const stored = await storedFile(path);
    const form = { format: 'int8_tensorwise', convrot, convrot_groupsize: 256 };
    await writeStored(transformer, withForms(asOriginal('z-image', stored), form));
    const model = await store.add(transformer, { as: 'theirs' });
    expect(model.precision).toBe('int8');
    const copied = await storedFile(join(model.folder, 'transformer/diffusion_pytorch_model.safetensors'));
    expect([...copied.keys()].sort()).toEqual([...stored.keys()].sort());
    const isChanged = ([name, { bytes }]: [string, StoredTensor]) =>
      !Buffer.from(bytes).equals(stored.get(name)!.bytes);
    expect([...copied].filter(isChanged).map(([name]) => name)).toEqual([]);
    const written = await readPart(join(model.folder, 'transformer'));
    expect(written.get('layers.0.attention.to_k.weight')!.int8!.rotation).toBe(convrot ? 256 : 1);
    if (convrot) expect(psnr(await draw(model.folder), await draw(ours.folder))).toBeGreaterThan(60);
    await expect(store.add(transformer, { as: 'x', precision: 'bfloat16' })).rejects.toMatchObject({
      code: 'InvalidModel',
      message: expect.stringContaining('int8') as string,
    });
  });
});

describe('What is refused of files of parts', () => {
  const change = async (file: string, edit: (tensors: StoredTensors) => unknown): Promise<void> => {
    const tensors = await storedFile(file);
    edit(tensors);
    await writeStored(file, tensors);
  };
  const number: StoredTensor = { dtype: 'F32', shape: [1], bytes: new Uint8Array(4) };
  const packed: StoredTensor = { dtype: 'U8', shape: [4], bytes: new Uint8Array(4) };
  const layer = 'double_blocks.0.img_attn.proj';

  it.each<[string, string, (tensors: StoredTensors) => unknown, RegExp]>([
    [
      'four bits of Nvidia',
      'transformer',
      (all) => all.set(`${layer}.weight`, packed).set(`${layer}.weight_scale_2`, number),
      /"double_blocks\.0\.img_attn\.proj".+U8.+Take its file in bfloat16, fp8, int8 or GGUF/,
    ],
    [
      'bitsandbytes',
      'transformer',
      (all) => all.set(`${layer}.weight.absmax`, number),
      /absmax" is of a form that is not read\. Take its file in bfloat16/,
    ],
    [
      'a tensor of no layer',
      'transformer',
      (all) => all.set(`${layer}.gate`, number),
      /has transformer_blocks\.0\.attn\.to_out\.0\.gate, which is of no layer that is known/,
    ],
    [
      'a layer that is missing',
      'transformer',
      (all) => all.delete(`${layer}.weight`),
      /have no "transformer_blocks\.0\.attn\.to_out\.0\.weight"/,
    ],
    [
      'another language model',
      'textEncoder',
      (all) => all.set('visual.blocks.0.attn.qkv.weight', number),
      /visual\.blocks\.0\.attn\.qkv\.weight is of another language model than Qwen3/,
    ],
    [
      'a text encoder of another width',
      'transformer',
      (all) => {
        const { dtype, bytes } = all.get('txt_in.weight')!;
        all.set('txt_in.weight', { dtype, shape: [64, 192], bytes });
      },
      /is no text encoder of this FLUX\.2 \[klein\]: its states are 32 wide, and 64 are needed/,
    ],
  ])('is %s', async (_, part, edit, message) => {
    const files = await filesOf('flux2-klein');
    await change(files[part as keyof typeof files], edit);
    const { transformer, textEncoder, vae } = files;
    await expect(store.add(transformer, { as: 'x', textEncoder, vae })).rejects.toThrow(message);
    expect((await left()).filter((path) => !path.endsWith('.lock'))).toEqual([]);
  });

  it('is a GGUF file of another language model', async () => {
    const { transformer, textEncoder, vae } = await filesOf('flux2-klein');
    const { blocks } = await inBlocks(await readSafetensors(textEncoder), 'Q8_0');
    await writeFile(`${textEncoder}.gguf`, ggufOfQwen3(blocks, { 'general.architecture': 'qwen3vl' }));
    await expect(store.add(transformer, { as: 'x', textEncoder: `${textEncoder}.gguf`, vae })).rejects.toMatchObject({
      code: 'InvalidSource',
      message: expect.stringContaining('has no text encoder Qwen3') as string,
    });
  });

  it('is an autoencoder of another family, and options that a checkpoint has no use for', async () => {
    const { transformer, textEncoder } = await filesOf('flux2-klein');
    const { vae } = await filesOf('z-image');
    await expect(store.add(transformer, { as: 'x', textEncoder, vae })).rejects.toThrow(
      /16 channels, and 128 are needed/,
    );
    await expect(store.add(source('flux2-klein'), { as: 'x', textEncoder })).rejects.toThrow(
      'leave --text-encoder out',
    );
    await expect(store.add(source('flux2-klein'), { as: 'x', isDistilled: true })).rejects.toThrow(
      'leave --distilled out',
    );
  });
});

describe('An installation of files of parts that is broken off', () => {
  it('shows nothing, and the next one goes on with it and touches no file of others', async () => {
    const { transformer, textEncoder, vae } = await filesOf('flux2-klein');
    const whole = await store.add(transformer, { as: 'whole', textEncoder, vae });
    const installed = join(whole.folder, 'text_encoder/model.safetensors');
    const before = await readFile(installed);
    const stop = new AbortController();
    const onProgress = ({ phase }: ModelProgress): void => void (phase === 'check' && stop.abort());
    // Its text encoder is a link to that of the other.
    await expect(store.add(transformer, { as: 'next', onProgress, signal: stop.signal })).rejects.toMatchObject({
      code: 'Aborted',
    });
    expect((await store.list()).map(({ name }) => name)).toEqual(['whole']);
    expect(statSync(join(folder, '.next.converted/text_encoder/model.safetensors')).nlink).toBe(2);
    const model = await store.add(transformer, { as: 'next', textEncoder, vae, precision: 'int8' });
    expect(model.precision).toBe('int8');
    expect((await readFile(installed)).equals(before)).toBe(true);
    expect(await left()).toEqual(['.next.darkroom-model.json', '.whole.darkroom-model.json', 'next', 'whole']);
  });
});
