import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelFolderError, readModelFolder } from '@app/diffusion';
import { unpackFamily, unpackFolder, unpackTransformerModel } from '../support/families';
import { cpu } from '../support/cpu';
import { encodeSafetensors } from '../support/safetensors';

type Name = 'ernie-image' | 'flux2-klein' | 'z-image' | 'sdxl';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broken-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Where the files of a model are, once it is unpacked. */
async function unpacked(name: Name): Promise<string> {
  if (name !== 'sdxl') return unpackTransformerModel(name, folder).then(() => folder);
  await unpackFamily(name, folder);
  return join(folder, 'model');
}

type Change = (path: string) => Promise<unknown>;

const config =
  (file: string, change: object): Change =>
  async (path) => {
    const json = JSON.parse(await readFile(join(path, file), 'utf8')) as object;
    await writeFile(join(path, file), JSON.stringify({ ...json, ...change }));
  };

const without =
  (file: string): Change =>
  (path) =>
    rm(join(path, file));

/** Gives weights other names, as long as theirs. */
const renamed =
  (file: string, from: string, to: string): Change =>
  async (path) => {
    const text = await readFile(join(path, file), 'latin1');
    expect(text).toContain(`"${from}`);
    await writeFile(join(path, file), text.replaceAll(`"${from}`, `"${to}`), 'latin1');
  };

const vaeOf =
  (name: string): Change =>
  async (path) => {
    const from = join(__dirname, 'models', name, 'vae');
    await unpackFolder(from, join(path, 'vae'));
  };

const weights = '/diffusion_pytorch_model.safetensors';
const [transformer, vae] = ['transformer', 'vae'].map((part) => part + weights);
const text = 'text_encoder/model.safetensors';
const [ofTransformer, ofVae, ofText, ofUnet] = ['transformer', 'vae', 'text_encoder', 'unet'].map(
  (part) => `${part}/config.json`,
);
const scheduler = 'scheduler/scheduler_config.json';

const cases: [what: string, name: Name, change: Change, file: string, reason: RegExp][] = [
  ...[[1e9, 8, 8, 8], [8, 8, 8, 10], [8], [], [0.5, 8, 8, 8], [7, 9, 8, 8], 8].map((axes): (typeof cases)[number] => [
    `axes of ${JSON.stringify(axes)}`,
    'flux2-klein',
    config(ofTransformer, { axes_dims_rope: axes }),
    ofTransformer,
    /"axes_dims_rope" is .*(4 even whole numbers|and a head of the weights is 32 wide)/,
  ]),
  ['axes of other heads', 'z-image', config(ofTransformer, { axes_dims: [16, 24, 32] }), ofTransformer, /64 wide/],
  ['axes of other heads', 'ernie-image', config(ofTransformer, { rope_axes_dim: [8, 8, 8] }), ofTransformer, /32 wide/],
  ['another text encoder', 'ernie-image', config(ofText, { model_type: 'mistral4' }), ofText, /accepted is "mistral3"/],
  [
    'no eyes and no text',
    'ernie-image',
    renamed(text, 'language_model.', 'other_language.'),
    text,
    /embed_tokens|layers/,
  ],
  ['no configuration', 'flux2-klein', without(ofTransformer), ofTransformer, /is missing, and .*"axes_dims_rope"/],
  ['no configuration', 'z-image', without(ofTransformer), ofTransformer, /is missing, and .*"axes_dims"/],
  ...[
    { rope_theta: 1e300 },
    { norm_eps: 5 },
    { t_scale: 1e-9 },
    { n_layers: 3 },
    { n_refiner_layers: 2 },
    { dim: 512 },
    { n_heads: 8 },
    { in_channels: 4 },
    { cap_feat_dim: 64 },
  ].map((change): (typeof cases)[number] => {
    const reason = new RegExp(`another model: "${Object.keys(change)[0]}" is`);
    return [JSON.stringify(change), 'z-image', config(ofTransformer, change), ofTransformer, reason];
  }),
  ...[{ num_layers: 3 }, { num_single_layers: 1 }, { attention_head_dim: 64 }, { joint_attention_dim: 32 }].map(
    (change): (typeof cases)[number] => {
      const reason = new RegExp(`another model: "${Object.keys(change)[0]}" is \\d+, and by the weights it is \\d+`);
      return [JSON.stringify(change), 'flux2-klein', config(ofTransformer, change), ofTransformer, reason];
    },
  ),
  ...[{ hidden_size: 64 }, { head_dim: 8 }, { num_key_value_heads: 4 }, { vocab_size: 9 }].map(
    (change): (typeof cases)[number] => [
      JSON.stringify(change),
      'z-image',
      config(ofText, change),
      ofText,
      new RegExp(`another model: "${Object.keys(change)[0]}" is`),
    ],
  ),
  ['too few layers', 'z-image', config(ofText, { num_hidden_layers: 36 }), text, /lack|layers/],
  ['too many layers', 'z-image', config(ofText, { num_hidden_layers: 20 }), text, /has 28 layers, and its config/],
  ['groups of no use', 'z-image', config(ofVae, { norm_num_groups: 3 }), ofVae, /"norm_num_groups" is 3, and .* 16 /],
  [
    'groups without number',
    'sdxl',
    config(ofUnet, { norm_num_groups: 1e9 }),
    ofUnet,
    /"norm_num_groups" is 1000000000/,
  ],
  ['heads of no use', 'sdxl', config(ofUnet, { attention_head_dim: 7 }), ofUnet, /"attention_head_dim" is 7, and/],
  ['heads of other levels', 'sdxl', config(ofUnet, { attention_head_dim: [1] }), ofUnet, /is for 1 levels/],
  ['other blocks', 'sdxl', config(ofUnet, { layers_per_block: 9 }), ofUnet, /"layers_per_block" is 9, and by/],
  ['other sizes', 'sdxl', config(ofUnet, { addition_time_embed_dim: 1e5 }), ofUnet, /"addition_time_embed_dim" is/],
  ['other heads', 'sdxl', config(ofText, { num_attention_heads: 7 }), ofText, /"num_attention_heads" is 7, and/],
  ['too few layers', 'sdxl', config(ofText, { num_hidden_layers: 99 }), ofText, /"num_hidden_layers" is 99, and/],
  ['other blocks', 'sdxl', config(ofVae, { layers_per_block: 9 }), ofVae, /"layers_per_block" is 9, and by/],
  ['a gap', 'z-image', renamed(transformer, 'layers.0.', 'layers.7.'), transformer, /have no "layers.0|lack layers.0/],
  ['a gap', 'z-image', renamed(text, 'model.layers.3.', 'model.layers.x.'), text, /lack model.layers.3/],
  [
    'a strange weight',
    'z-image',
    renamed(transformer, 'cap_embedder.1.bias', 'cap_embedder.1.bios'),
    transformer,
    /has cap_embedder.1.bios, which is of no layer/,
  ],
  ['no conv', 'flux2-klein', renamed(transformer, 'x_embedder', 'y_embedder'), transformer, /no "x_embedder.weight"/],
  ["Z-Image's autoencoder", 'flux2-klein', vaeOf('z-image'), vae, /is no autoencoder of FLUX\.2 .* 16 channels/],
  ["FLUX.2's autoencoder", 'z-image', vaeOf('flux2-klein'), vae, /is no autoencoder of Z-Image: its latents have 32/],
  [
    'an autoencoder of other channels',
    'flux2-klein',
    async (path) => {
      const own = { 'bn.running_mean': { shape: [4], values: [0, 0, 0, 0] } };
      await writeFile(join(path, vae), encodeSafetensors(own));
    },
    vae,
    /its latents have 4 channels, and 128 are needed/,
  ],
  ['a yes', 'flux2-klein', config('model_index.json', { is_distilled: 'yes' }), 'model_index.json', /true nor false/],
  ['other times', 'flux2-klein', config(scheduler, { num_train_timesteps: 2 }), scheduler, /num_train_timesteps must/],
];

describe('A model whose files are deleted while it is drawn with', () => {
  it('lacks a file, whichever way that is noticed', async () => {
    const { denoiser } = await readModelFolder(await unpacked('z-image'));
    await rm(join(folder, transformer));
    await expect(denoiser.open(cpu)).rejects.toThrow(`${join(folder, transformer)} is missing. `);
  });
});

describe(readModelFolder.name, () => {
  it.each(cases)('refuses %s (%s), and names the file', async (_, name, change, file, reason) => {
    const path = await unpacked(name);
    await expect(readModelFolder(path)).resolves.toBeDefined();
    await change(path);
    const error: unknown = await readModelFolder(path).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelFolderError);
    expect((error as ModelFolderError).message.startsWith(`${join(path, file)} `)).toBe(true);
    expect((error as ModelFolderError).message).toMatch(reason);
  });
});
