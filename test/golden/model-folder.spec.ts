import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cures, type PipelineFacts, ModelFolderError, ProviderUnavailableError, Pipeline } from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';
import { makePipe } from '../support/make-pipe';

const shapes = join(__dirname, '../../models/shapes');
const tiny = (name: string) => join(__dirname, 'models/tiny', name);

const unet = 'unet/diffusion_pytorch_model.safetensors';
const [vocab, merges] = ['tokenizer/vocab.json', 'tokenizer/merges.txt'];
const scheduler = 'scheduler/scheduler_config.json';
const lfsPointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3438167540\n';

let root: string;
let folder: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'darkroom-model-'));
  folder = join(root, 'model');
  await unpackFamily('sd21', root);
});
afterEach(() => rm(root, { recursive: true }));

const at = (name: string) => join(folder, name);
const write = (name: string, text: string) => writeFile(at(name), text);
const edit = async (name: string, change: object) =>
  write(name, JSON.stringify({ ...(JSON.parse(await readFile(at(name), 'utf8')) as object), ...change }));

const load = async (options = cpu): Promise<PipelineFacts> => {
  const pipeline = await Pipeline.load(folder, options);
  await pipeline.release();
  return pipeline.facts;
};

/** A fault, the file that is named, what is said of it, and how it comes about. */
type Damage = [what: string, file: string, reason: RegExp, damage: () => Promise<unknown>];

const damages: Damage[] = [
  ['a pointer in place of weights', unet, /only a pointer of Git LFS/, () => write(unet, lfsPointer)],
  ['a pointer in place of a vocabulary', vocab, /only a pointer of Git LFS/, () => write(vocab, lfsPointer)],
  ['weights cut short', unet, /cannot be read: The tensor .* outside the/, () => truncate(at(unet), 100_000)],
  ...[unet, 'unet/config.json', merges, 'darkroom.json'].map((file): Damage => [
    `a pipe in place of ${file}`,
    file,
    /is a (folder, a )?pipe/,
    () => makePipe(at(file)),
  ]),
  [
    'a vocabulary with one id for two tokens',
    vocab,
    /gives one id, 5, to several tokens: ".+" and "a<\/w>"/,
    () => edit(vocab, { 'a</w>': 5 }),
  ],
  ['a missing vocabulary', vocab, /is missing/, () => rm(at(vocab))],
  [
    'merges of another vocabulary',
    merges,
    /does not fit vocab.json, which has no token "foreign"/,
    () => write(merges, '#version: 0.2\nfor eign\n'),
  ],
  [
    'merges cut short',
    merges,
    /is cut short: it has 259 merges/,
    async () => write(merges, (await readFile(at(merges), 'utf8')).split('\n').slice(0, 260).join('\n')),
  ],
  ['a scheduler that is not JSON', scheduler, /not valid JSON/, () => write(scheduler, '{')],
  ['a bad scheduler value', scheduler, /beta_end must be/, () => edit(scheduler, { beta_end: 'high' })],
  ['a preview map that is none', 'preview.json', /three rows/, () => write('preview.json', '{"bias": 0}')],
];

const misfits: Damage[] = [
  [
    'a preview map of another model',
    'preview.json',
    /each of 4/,
    () => write('preview.json', '{"weights": [[1], [1], [1]], "bias": [0, 0, 0]}'),
  ],
  [
    'a tokenizer of another model',
    'text_encoder/model.safetensors',
    /knows 776 tokens, and its tokenizer has 49408/,
    () => rm(at('tokenizer'), { recursive: true }),
  ],
  [
    'the text encoder of a wider model',
    unet,
    /takes embeddings 24 wide, and the text encoders give 128/,
    async () => {
      for (const part of ['text_encoder', 'tokenizer']) {
        await rm(at(part), { recursive: true });
        await cp(join(shapes, part), at(part), { recursive: true });
      }
    },
  ],
  ...['text_encoder/model.safetensors', unet, 'vae/diffusion_pytorch_model.safetensors'].map((file): Damage => [
    `numbers that are none in ${file}`,
    file,
    /gives numbers that are not finite/,
    async () => {
      const bytes = await readFile(at(file));
      // A float32 with all bits set is NaN.
      await writeFile(at(file), bytes.fill(0xff, 8 + Number(bytes.readBigUInt64LE())));
    },
  ]),
  ...[
    [
      'a layer that is missing',
      '"conv_out.',
      '"conv_owt.',
      /is not what its graph needs: The weights have no "conv_out/,
    ],
    ['a layer of other axes', '[4,8,3,3]', '[4,72]   ', /needs: The weight conv_out\.weight is of 2 axes, and not 4/],
    ['layers that do not fit', '[32,8]', '[8,32]', /was refused by ONNX Runtime|cannot be run/],
  ].map(([what, from, to, reason]): Damage => [
    what as string,
    unet,
    reason as RegExp,
    async () => {
      const text = await readFile(at(unet), 'latin1');
      expect(text).toContain(from);
      await writeFile(at(unet), text.replaceAll(from, to as string), 'latin1');
    },
  ]),
];

describe('Pipeline.load', () => {
  const expectRefused = async (file: string, reason: RegExp): Promise<void> => {
    const error: unknown = await load().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelFolderError);
    const { message } = error as ModelFolderError;
    expect(message.startsWith(`${at(file)} `)).toBe(true);
    expect(message).toMatch(reason);
    expect(Object.values(cures).filter((cure) => message.endsWith(`. ${cure}`))).toHaveLength(1);
    expect(message).not.toContain('\n');
  };

  it.each(damages)('rejects %s with one sentence, and one of what to do, unloaded', async (_, file, reason, damage) => {
    await damage();
    const create = jest.spyOn(InferenceSession, 'create');
    await expectRefused(file, reason);
    expect(create).not.toHaveBeenCalled();
    create.mockRestore();
  });

  it.each(misfits)('rejects %s', async (_, file, reason, damage) => {
    await damage();
    await expectRefused(file, reason);
  });

  it('recognises the bundled model from its own files', async () => {
    folder = shapes;
    expect(await load()).toMatchObject({
      latentChannels: 22,
      scaleFactor: 32,
      scheduler: 'pndm',
      nativeSize: 512,
    });
  });

  it.each([
    ['sd15-diffusers', { latentChannels: 4, scaleFactor: 8, scheduler: 'pndm' }],
    ['sd21-optimum', { scheduler: 'ddim', nativeSize: 512 }],
  ])("reads the weights of %s's graphs, whatever they are called", async (name, facts) => {
    folder = join(root, 'export');
    await cp(tiny(name), folder, { recursive: true });
    for (const part of ['text_encoder', 'unet', 'vae_decoder'])
      await rename(join(folder, part, 'model.onnx'), join(folder, part, `${part}_fp32.onnx`));
    expect(await load()).toMatchObject(facts);
  });

  it('says of a graph whose weights cannot be named what to install', async () => {
    folder = join(root, 'export');
    await cp(tiny('sd15-diffusers'), folder, { recursive: true });
    const graph = at('unet/model.onnx');
    const text = await readFile(graph, 'latin1');
    await writeFile(graph, text.replaceAll('/conv_in/', '/conv_xx/').replaceAll('conv_in.', 'conv_xx.'), 'latin1');
    await expectRefused('unet/model.onnx', /is not what its graph needs: The weights have no "conv_in\.weight"/);
  });

  it("draws from a folder of links into the hub's cache", async () => {
    const request = { prompt: 'a', width: 32, height: 48, numInferenceSteps: 2, guidanceScale: 5, seeds: [1] };
    const draw = async () => {
      const pipeline = await Pipeline.load(folder, cpu);
      return pipeline.generate(request).finally(() => pipeline.release());
    };
    const expected = await draw();
    const blobs = join(root, 'blobs');
    await mkdir(blobs);
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const [file, blob] = [join(entry.parentPath, entry.name), join(blobs, `${(await readdir(blobs)).length}`)];
      await rename(file, blob);
      await symlink(blob, file);
    }
    expect(await draw()).toStrictEqual(expected);
  });

  it('reports the device without a provider', async () => {
    // A device that no machine has, so that the test also works on a machine with a GPU.
    const error: unknown = await load({ ...cpu, device: 'cuda:99' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProviderUnavailableError);
    expect((error as Error).message).toMatch(/^The device cuda:99 cannot be used: [^\n]+\.$/);
  });
});
