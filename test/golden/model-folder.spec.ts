import { cp, mkdtemp, readdir, readFile, rename, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ModelFacts,
  ModelFolderError,
  modelWidths,
  ProviderUnavailableError,
  StableDiffusionPipeline,
} from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';
import { cpu } from '../support/cpu';
import { damages, Folder, graph, models } from '../support/damaged-folder';
import { KeptSessions } from '../support/kept-sessions';
import { refusalsOfPage } from '../support/refusals-page';

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

  it.each(damages)('rejects %s with one sentence, and one of what to do, unloaded', async (_, file, reason, damage) => {
    await damage(folder);
    const create = jest.spyOn(InferenceSession, 'create');
    const error: unknown = await load().catch((thrown: unknown) => thrown);
    expect(create).not.toHaveBeenCalled();
    create.mockRestore();
    expect(error).toBeInstanceOf(ModelFolderError);
    const { message } = error as ModelFolderError;
    expect(message.startsWith(`${folder.at(file)} `)).toBe(true);
    expect(message).toMatch(reason);
    expect(message).toMatch(/^[^\n]+\.$/);
    const { says } = refusalsOfPage().find(({ cure }) => message.endsWith(`. ${cure}`))!;
    expect(says.filter((words) => words.test(message))).not.toEqual([]);
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
