import { cp, mkdtemp, readdir, readFile, rename, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ModelFolderError, modelWidths, ProviderUnavailableError, StableDiffusionPipeline } from '@app/diffusion';
import type { ModelFacts } from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';
import { cpu } from '../support/cpu';
import { KeptSessions } from '../support/kept-sessions';

const models = { tiny: join(__dirname, 'models/tiny'), shapes: join(__dirname, '../../models/shapes') };

/** Changes to a valid folder, by paths inside it. */
class Folder {
  constructor(readonly path: string) {}
  at = (name: string) => join(this.path, name);
  remove = (name: string) => rm(this.at(name), { recursive: true });
  write = (name: string, text: string) => writeFile(this.at(name), text);
  cut = (name: string, bytes: number) => truncate(this.at(name), bytes);
  edit = async (name: string, change: object) =>
    this.write(name, JSON.stringify({ ...(JSON.parse(await readFile(this.at(name), 'utf8')) as object), ...change }));
  replace = async (part: string, other: string) => {
    await this.remove(part);
    await cp(this.at(other), this.at(part), { recursive: true });
  };
}

const scheduler = 'scheduler/scheduler_config.json';
const graph = 'unet/model.onnx';
const lfsPointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3438167540\n';
const narrowMap = '{"weights": [[1], [1], [1]], "bias": [0, 0, 0]}';

type Damage = [what: string, file: string, reason: RegExp, damage: (folder: Folder) => Promise<unknown>];
const damages: Damage[] = [
  ['a missing folder', '', /does not exist/, ({ path }) => rm(path, { recursive: true })],
  ['a missing part', 'vae_decoder', /is missing/, ({ remove }) => remove('vae_decoder')],
  ['a missing graph', graph, /is missing/, ({ remove }) => remove(graph)],
  ['missing external data', 'unet/weights.pb', /is missing/, ({ remove }) => remove('unet/weights.pb')],
  ['external data cut short', 'unet/weights.pb', /is cut short/, ({ cut }) => cut('unet/weights.pb', 500_000)],
  ['an empty graph', graph, /no whole ONNX model/, ({ cut }) => cut(graph, 0)],
  ['a graph cut short', graph, /no whole ONNX model/, ({ cut }) => cut(graph, 200_000)],
  ['a pointer in place of a graph', graph, /only a pointer of Git LFS/, ({ write }) => write(graph, lfsPointer)],
  [
    'a pointer in place of weights',
    'unet/weights.pb',
    /only a pointer of Git LFS/,
    ({ write }) => write('unet/weights.pb', lfsPointer),
  ],
  [
    'a pointer in place of a vocabulary',
    'tokenizer/vocab.json',
    /only a pointer of Git LFS/,
    ({ write }) => write('tokenizer/vocab.json', lfsPointer),
  ],
  ['a missing vocabulary', 'tokenizer/vocab.json', /is missing/, ({ remove }) => remove('tokenizer/vocab.json')],
  ['missing merges', 'tokenizer/merges.txt', /is missing/, ({ remove }) => remove('tokenizer/merges.txt')],
  [
    'merges of another vocabulary',
    'tokenizer/merges.txt',
    /does not fit vocab.json, which has no token "foreign"/,
    ({ write }) => write('tokenizer/merges.txt', '#version: 0.2\nfor eign\n'),
  ],
  [
    'a foreign vocabulary',
    'tokenizer',
    /no token/,
    async ({ write }) => {
      await write('tokenizer/vocab.json', '{"a": 0}');
      await write('tokenizer/merges.txt', '');
    },
  ],
  ['a missing scheduler', scheduler, /is missing/, ({ remove }) => remove('scheduler')],
  ['a scheduler that is not JSON', scheduler, /not valid JSON/, ({ write }) => write(scheduler, '{')],
  ['wrong defaults', 'darkroom.json', /has steps that/, ({ write }) => write('darkroom.json', '{"steps": "few"}')],
  ...[0, -8, 0.5, 4097, '64', [64, 0], [64]].map((sample_size): Damage => [
    `a sample_size of ${JSON.stringify(sample_size)}`,
    'unet/config.json',
    /has a sample_size that is no integer from 1 to 4096/,
    ({ edit }) => edit('unet/config.json', { sample_size }),
  ]),
  ...['0', '"x"', '1e999'].map((factor): Damage => [
    `a scaling_factor of ${factor}`,
    'vae_decoder/config.json',
    /has a scaling_factor that is no number, infinite or 0/,
    ({ write }) => write('vae_decoder/config.json', `{"scaling_factor": ${factor}}`),
  ]),
  ['a bad scheduler value', scheduler, /beta_end must be/, ({ edit }) => edit(scheduler, { beta_end: 'high' })],
  ['a config that is not JSON', 'unet/config.json', /not valid JSON/, ({ write }) => write('unet/config.json', '[')],
  [
    'another pipeline',
    'model_index.json',
    /a StableDiffusionXLPipeline/,
    ({ edit }) => edit('model_index.json', { _class_name: 'StableDiffusionXLPipeline' }),
  ],
  ['a preview map of another model', 'preview.json', /each of 4/, ({ write }) => write('preview.json', narrowMap)],
  ['a preview map that is none', 'preview.json', /three rows/, ({ write }) => write('preview.json', '{"bias": 0}')],
  [
    'a VAE for other latents',
    'vae_decoder/model.onnx',
    /latents of 8 channels/,
    ({ edit }) => edit('vae_decoder/config.json', { latent_channels: 8 }),
  ],
  [
    'a vocabulary too large',
    'tokenizer',
    /has 776 tokens/,
    ({ edit }) => edit('text_encoder/config.json', { vocab_size: 700 }),
  ],
  [
    'rows too long',
    'tokenizer',
    /rows of 77 tokens/,
    ({ edit }) => edit('text_encoder/config.json', { max_position_embeddings: 32 }),
  ],
  ['a U-Net for a VAE', 'vae_decoder/model.onnx', /more than latents/, ({ replace }) => replace('vae_decoder', 'unet')],
  ['a VAE for a U-Net', graph, /has no input sample/, ({ replace }) => replace('unet', 'vae_decoder')],
  [
    'the text encoder of a wider model',
    'text_encoder/model.onnx',
    /embeddings 128 wide, and the U-Net takes 32/,
    async ({ at, remove }) => {
      await remove('text_encoder');
      await cp(join(models.shapes, 'text_encoder'), at('text_encoder'), { recursive: true });
    },
  ],
  [
    'the VAE of another model, whatever its config says',
    'vae_decoder/model.onnx',
    /takes latents of 22 channels, and the U-Net gives 4/,
    ({ at }) => cp(join(models.shapes, 'vae_decoder/model.onnx'), at('vae_decoder/model.onnx')),
  ],
];

describe('StableDiffusionPipeline.load', () => {
  const sessions = new KeptSessions();
  afterAll(() => sessions.release());

  let folder: Folder;
  let scratch: string;

  beforeEach(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'darkroom-model-'));
    folder = new Folder(join(scratch, 'model'));
    await cp(join(models.tiny, 'sd15-diffusers'), folder.path, { recursive: true });
  });
  afterEach(() => rm(scratch, { recursive: true }));

  const load = async (options = cpu) => {
    const pipeline = await StableDiffusionPipeline.load(folder.path, options);
    await pipeline.release();
    return pipeline;
  };

  it.each(damages)('rejects %s in one sentence', async (_, file, reason, damage) => {
    await damage(folder);
    const error: unknown = await load().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelFolderError);
    const { message } = error as ModelFolderError;
    expect(message.startsWith(`${folder.at(file)} `)).toBe(true);
    expect(message).toMatch(reason);
    expect(message).toMatch(/^[^\n]+\.$/);
  });

  const facts: [name: string, path: string, expected: Partial<ModelFacts>][] = [
    [
      'shapes',
      models.shapes,
      {
        latentChannels: 22,
        vaeScaleFactor: 32,
        predictionType: 'v_prediction',
        scheduler: 'pndm',
        nativeSize: 512,
        hiddenWidth: 128,
        maxTokens: 77,
      },
    ],
    [
      'sd21-optimum',
      join(models.tiny, 'sd21-optimum'),
      { latentChannels: 4, vaeScaleFactor: 8, predictionType: 'v_prediction', scheduler: 'ddim', nativeSize: 512 },
    ],
    [
      'sd15-fp16',
      join(models.tiny, 'sd15-fp16'),
      {
        predictionType: 'epsilon',
        hiddenWidth: 32,
        dtypes: { textEncoder: 'float16', unet: 'float16', vaeDecoder: 'float16' },
      },
    ],
  ];

  it.each(facts)('recognises %s from its own files', async (_, path, expected) => {
    const pipeline = await StableDiffusionPipeline.load(path, cpu);
    expect(pipeline.facts).toMatchObject(expected);
    await pipeline.release();
  });

  it('accepts a folder without the configs that older exports lack', async () => {
    const { facts: whole } = await load(sessions.options);
    for (const part of ['text_encoder', 'unet', 'vae_decoder']) await folder.remove(`${part}/config.json`);
    await folder.remove('model_index.json');
    // How wide the levels are stands in no graph: they are taken to be those of Stable Diffusion 1.x.
    expect((await load(sessions.options)).facts).toEqual({
      ...whole,
      widths: modelWidths({ textEncoder: {}, unet: {}, vaeDecoder: {} }),
    });
  });

  it('accepts configs without a size and a factor, or with two edges', async () => {
    const { edit } = folder;
    await edit('unet/config.json', { sample_size: [64, 96] });
    await edit('vae_decoder/config.json', { sample_size: null, scaling_factor: null });
    await expect(load()).resolves.toBeDefined();
  });

  it('accepts tokenizer.json in place of vocabulary and merges', async () => {
    const [vocab, merges] = await Promise.all(
      ['vocab.json', 'merges.txt'].map((name) => readFile(folder.at(`tokenizer/${name}`), 'utf8')),
    );
    const model = { vocab: JSON.parse(vocab) as object, merges: merges.trim().split('\n').slice(1) };
    await folder.remove('tokenizer/vocab.json');
    await folder.remove('tokenizer/merges.txt');
    await folder.write('tokenizer/tokenizer.json', JSON.stringify({ model }));
    await expect(load()).resolves.toBeDefined();
  });

  it('accepts the only graph of a part, whatever its name', async () => {
    await rename(folder.at(graph), folder.at('unet/unet_fp32.onnx'));
    await expect(load()).resolves.toBeDefined();
  });

  it('loads the plain graph on the CPU, and explains if only a graph fused for CUDA exists', async () => {
    await cp(folder.at(graph), folder.at('unet/model_cuda.onnx'));
    await expect(load()).resolves.toBeDefined();
    await folder.remove(graph);
    await expect(load()).rejects.toThrow('model_cuda.onnx beside it needs a CUDA device');
  });

  it('reports the device without a provider', async () => {
    // A device that no machine has, so that the test also works on a machine with a GPU.
    const error: unknown = await load({ ...cpu, device: 'cuda:99' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProviderUnavailableError);
    expect((error as Error).message).toMatch(/^The device cuda:99 cannot be used: [^\n]+\.$/);
  });

  describe('with a folder for optimised graphs', () => {
    const optimized = () => ({ ...cpu, optimizedModelDir: join(scratch, 'optimized') });
    const entries = async () => (await readdir(join(scratch, 'optimized'))).sort();

    it('fills it once, and draws the same from it', async () => {
      const request = { prompt: 'a', width: 64, height: 64, numInferenceSteps: 2, guidanceScale: 5, seeds: [1] };
      const draw = async () => {
        const pipeline = await StableDiffusionPipeline.load(folder.path, optimized());
        const { images } = await pipeline.generate(request);
        await pipeline.release();
        return images;
      };
      // An entry that is made again has the same name, and the number and time of another folder.
      const states = async () =>
        Promise.all((await entries()).map((entry) => stat(join(scratch, 'optimized', entry)))).then((found) =>
          found.map(({ ino, birthtimeMs }) => ({ ino, birthtimeMs })),
        );
      const first = await draw();
      const filled = await states();
      expect(filled).toHaveLength(3);
      const create = jest.spyOn(InferenceSession, 'create');
      expect(await draw()).toStrictEqual(first);
      const opened = create.mock.calls.map(([file]) => dirname(String(file)));
      create.mockRestore();
      expect(opened.sort()).toEqual((await entries()).map((entry) => join(scratch, 'optimized', entry)));
      expect(await states()).toEqual(filled);
    });

    it('replaces a damaged entry', async () => {
      await load(optimized());
      const [entry] = await entries();
      const file = join(scratch, 'optimized', entry, 'model.onnx');
      const { size } = await stat(file);
      await truncate(file, 100);
      await load(optimized());
      expect((await stat(file)).size).toBe(size);
    });

    it('replaces an entry when the model changes', async () => {
      await load(optimized());
      const before = await entries();
      await utimes(folder.at('unet/weights.pb'), new Date(0), new Date(0));
      await load(optimized());
      const after = await entries();
      expect(after).toHaveLength(3);
      expect(after.filter((entry) => before.includes(entry))).toHaveLength(2);
    });

    it('loads even if the folder is not writable', async () => {
      await writeFile(join(scratch, 'optimized'), 'a file where the folder should be');
      await expect(load(optimized())).resolves.toBeDefined();
    });
  });
});
