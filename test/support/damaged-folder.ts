import { execFileSync } from 'node:child_process';
import { cp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const models = {
  tiny: join(__dirname, '../golden/models/tiny'),
  shapes: join(__dirname, '../../models/shapes'),
};

/** Changes to a valid folder, by paths inside it. */
export class Folder {
  constructor(readonly path: string) {}
  at = (name: string) => join(this.path, name);
  remove = (name: string) => rm(this.at(name), { recursive: true });
  write = (name: string, text: string) => writeFile(this.at(name), text);
  makePipe = async (name: string) => {
    await rm(this.at(name), { force: true });
    execFileSync('mkfifo', [this.at(name)]);
  };
  cut = (name: string, bytes: number) => truncate(this.at(name), bytes);
  edit = async (name: string, change: object) =>
    this.write(name, JSON.stringify({ ...(JSON.parse(await readFile(this.at(name), 'utf8')) as object), ...change }));
  replace = async (part: string, other: string) => {
    await this.remove(part);
    await cp(this.at(other), this.at(part), { recursive: true });
  };
}

const merges = 'tokenizer/merges.txt';
const scheduler = 'scheduler/scheduler_config.json';
export const graph = 'unet/model.onnx';
const lfsPointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3438167540\n';
const narrowMap = '{"weights": [[1], [1], [1]], "bias": [0, 0, 0]}';

/** What is wrong, the file that is named, what is said of it, and how it comes about. */
type Damage = [what: string, file: string, reason: RegExp, damage: (folder: Folder) => Promise<unknown>];
/** What keeps a model from being drawn with. */
export const damages: Damage[] = [
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
  ...['unet/config.json', graph, 'unet/weights.pb', merges, 'darkroom.json'].map((file): Damage => [
    `a pipe in place of ${file}`,
    file,
    /is a pipe, a socket or a device, and no file/,
    ({ makePipe }) => makePipe(file),
  ]),
  [
    'a vocabulary with one id for two tokens',
    'tokenizer/vocab.json',
    /gives one id, 5, to several tokens: ".+" and "a<\/w>"/,
    ({ edit }) => edit('tokenizer/vocab.json', { 'a</w>': 5 }),
  ],
  ['a missing vocabulary', 'tokenizer/vocab.json', /is missing/, ({ remove }) => remove('tokenizer/vocab.json')],
  ['missing merges', merges, /is missing/, ({ remove }) => remove(merges)],
  [
    'merges of another vocabulary',
    merges,
    /does not fit vocab.json, which has no token "foreign"/,
    ({ write }) => write(merges, '#version: 0.2\nfor eign\n'),
  ],
  ['empty merges', merges, /is cut short: it has 0 merges, and .* needs 262/, ({ write }) => write(merges, '')],
  [
    'merges cut short',
    merges,
    /is cut short: it has 259 merges/,
    async ({ at, write }) => write(merges, (await readFile(at(merges), 'utf8')).split('\n').slice(0, 260).join('\n')),
  ],
  [
    'a foreign vocabulary',
    'tokenizer',
    /no token/,
    async ({ write }) => {
      await write('tokenizer/vocab.json', '{"a": 0}');
      await write(merges, '');
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
  ...['"x"', '1e999'].map((shift): Damage => [
    `a shift_factor of ${shift}`,
    'vae_decoder/config.json',
    /has a shift_factor that is no number or infinite/,
    ({ write }) => write('vae_decoder/config.json', `{"shift_factor": ${shift}}`),
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
  [
    'a U-Net without a timestep',
    graph,
    /has no input timestep\. Export/,
    async ({ at }) => {
      const bytes = await readFile(at(graph), 'latin1');
      await writeFile(at(graph), bytes.replaceAll('timestep', 'timesteq'), 'latin1');
    },
  ],
  ['a U-Net for a VAE', 'vae_decoder/model.onnx', /more than latents/, ({ replace }) => replace('vae_decoder', 'unet')],
  [
    'a VAE for a text encoder',
    'text_encoder/model.onnx',
    /is the graph of another part: it takes latent_sample, where a CLIP text encoder takes token ids alone/,
    ({ replace }) => replace('text_encoder', 'vae_decoder'),
  ],
  [
    'a U-Net for a text encoder',
    'text_encoder/model.onnx',
    /is the graph of another part: it takes sample, timestep, encoder_hidden_states, where/,
    ({ replace }) => replace('text_encoder', 'unet'),
  ],
  ...(['vae_decoder', 'text_encoder'] as const).map((part): Damage => [
    `the graph of ${part} for a U-Net`,
    graph,
    /is the graph of another part: it takes \w+, where a U-Net takes latents, a timestep and embeddings/,
    ({ replace }) => replace('unet', part),
  ]),
  [
    'a text encoder for a VAE',
    'vae_decoder/model.onnx',
    /is the graph of another part: it takes input_ids, where a VAE decoder takes latents/,
    ({ replace }) => replace('vae_decoder', 'text_encoder'),
  ],
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
