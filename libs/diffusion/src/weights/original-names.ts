/**
 * Names of weights in the checkpoints of CompVis' latent-diffusion (LDM), Stability AI and OpenCLIP, brought to those
 * of diffusers and transformers. Source: `loaders/single_file_utils.py` of diffusers.
 */
import { type NamedTensor, type NamedTensors, rowsOf, tensorsBelow } from './named-tensor';

/** A part of a model, as diffusers calls its folder: `unet`, `vae`, `text_encoder`. */
export type PartName = string;

/** The weights of a model by part, with diffusers' names. */
export type PartTensors = ReadonlyMap<PartName, NamedTensors>;

const checkpointParts: readonly [prefix: string, part: PartName][] = [
  ['model.diffusion_model.', 'unet'],
  ['first_stage_model.', 'vae'],
  ['cond_stage_model.transformer.', 'text_encoder'],
  ['cond_stage_model.model.', 'text_encoder'],
  ['conditioner.embedders.0.transformer.', 'text_encoder'],
  ['conditioner.embedders.1.model.', 'text_encoder_2'],
  ['control_model.', 'controlnet'],
];

/** The parts of a model that stand in one file, with the names of diffusers; none if it is no such file. */
export function partsOfCheckpoint(tensors: NamedTensors): Map<PartName, NamedTensors> {
  const parts = new Map<PartName, NamedTensors>();
  for (const [prefix, part] of checkpointParts) {
    const below = tensorsBelow(tensors, prefix);
    if (below.size > 0) parts.set(part, withDiffusersNames(part, below));
  }
  return parts;
}

/** The weights of one part with the names that its architecture knows, whichever they had. */
export function withDiffusersNames(part: PartName, tensors: NamedTensors): NamedTensors {
  if (part === 'vae') return autoencoderTensors(tensors);
  if (part === 'unet' || part === 'controlnet') return unetTensors(tensors);
  return part.startsWith('text_encoder') ? textEncoderTensors(tensors) : tensors;
}

/** Weights with other names; those that get none are left out. */
function renamed(tensors: NamedTensors, rename: (name: string) => string | undefined): Map<string, NamedTensor> {
  const found = new Map<string, NamedTensor>();
  for (const [name, tensor] of tensors) {
    const other = rename(name);
    if (other !== undefined) found.set(other, tensor);
  }
  return found;
}

/** `[layer, parameter]` of a weight's name. */
function split(name: string): [string, string] {
  const dot = name.lastIndexOf('.');
  return [name.slice(0, dot), name.slice(dot)];
}

function unetTensors(tensors: NamedTensors): NamedTensors {
  if (!tensors.has('input_blocks.0.0.weight')) return tensors;
  const layers = layersPerLevel(tensors);
  const hints = [...tensors.keys()].map((name) => Number(/^input_hint_block\.(\d+)\./.exec(name)?.[1] ?? 0));
  const lastHint = `input_hint_block.${Math.max(...hints)}`;
  return renamed(tensors, (name) => {
    const [layer, parameter] = split(name);
    if (layer === lastHint) return `controlnet_cond_embedding.conv_out${parameter}`;
    return diffusersUnetPath(layer, layers) + parameter;
  });
}

/** Residual layers of a level: the block after a level's last one halves the picture. */
function layersPerLevel(tensors: NamedTensors): number {
  for (let block = 1; tensors.has(`input_blocks.${block}.0.in_layers.0.weight`); block++)
    if (tensors.has(`input_blocks.${block + 1}.0.op.weight`)) return block;
  return 2;
}

const resnetNames: Readonly<Record<string, string>> = {
  'in_layers.0': 'norm1',
  'in_layers.2': 'conv1',
  'out_layers.0': 'norm2',
  'out_layers.3': 'conv2',
  'emb_layers.1': 'time_emb_proj',
  skip_connection: 'conv_shortcut',
};

const outerNames: Readonly<Record<string, string>> = {
  'input_blocks.0.0': 'conv_in',
  'time_embed.0': 'time_embedding.linear_1',
  'time_embed.2': 'time_embedding.linear_2',
  'label_emb.0.0': 'add_embedding.linear_1',
  'label_emb.0.2': 'add_embedding.linear_2',
  'out.0': 'conv_norm_out',
  'out.2': 'conv_out',
  'middle_block_out.0': 'controlnet_mid_block',
  'time_embed.cond_proj': 'time_embedding.cond_proj',
  'input_hint_block.0': 'controlnet_cond_embedding.conv_in',
};

/**
 * The path of a layer of a U-Net or ControlNet as diffusers has it, of its path in LDM, which numbers blocks through.
 * In place of its dots there may be underscores, as in LoRAs; then some are left. Another path is returned as it is.
 */
export function diffusersUnetPath(path: string, layers = 2): string {
  const outer = path.replace(/_(?=\d)/g, '.').replace(/(?<=\d)_/g, '.');
  if (outerNames[outer]) return outerNames[outer];
  const [, zero] = /^zero_convs[._](\d+)[._]0$/.exec(path) ?? [];
  if (zero) return `controlnet_down_blocks.${zero}`;
  const [, hint] = /^input_hint_block[._](\d+)$/.exec(path) ?? [];
  if (hint) return `controlnet_cond_embedding.blocks.${Number(hint) / 2 - 1}`;
  const [, middle, inside] = /^middle_block[._]([012])[._](.+)$/.exec(path) ?? [];
  if (middle === '1') return `mid_block.attentions.0.${inside}`;
  if (middle) return `mid_block.resnets.${Number(middle) / 2}.${resnetName(inside)}`;
  const [, side, number, place, inner] = /^(input|output)_blocks[._](\d+)[._](\d)[._](.+)$/.exec(path) ?? [];
  if (side === undefined) return path;
  // Before the blocks of the way down comes the first convolution.
  const block = Number(number) - (side === 'input' ? 1 : 0);
  const level = `${side === 'input' ? 'down' : 'up'}_blocks.${Math.floor(block / (layers + 1))}`;
  if (inner === 'op') return `${level}.downsamplers.0.conv`;
  if (inner === 'conv') return `${level}.upsamplers.0.conv`;
  const layer = block % (layers + 1);
  return place === '0' ? `${level}.resnets.${layer}.${resnetName(inner)}` : `${level}.attentions.${layer}.${inner}`;
}

const resnetName = (inner: string): string => resnetNames[inner.replace(/_(?=\d)/, '.')] ?? inner;

/** Names inside the autoencoder's attention in LDM, and in diffusers before 0.17. */
const attentionNames: Readonly<Record<string, string>> = {
  norm: 'group_norm',
  q: 'to_q',
  k: 'to_k',
  v: 'to_v',
  query: 'to_q',
  key: 'to_k',
  value: 'to_v',
  proj_out: 'to_out.0',
  proj_attn: 'to_out.0',
};

function autoencoderTensors(tensors: NamedTensors): NamedTensors {
  const levels = [...tensors.keys()].map((name) => Number(/^decoder\.up\.(\d+)\./.exec(name)?.[1] ?? -1));
  const last = Math.max(...levels);
  const found = renamed(tensors, (name) => {
    const [layer, parameter] = split(name);
    const path = layer
      .replace(/^encoder\.down\.(\d+)\.block\./, 'encoder.down_blocks.$1.resnets.')
      .replace(/^encoder\.down\.(\d+)\.downsample\./, 'encoder.down_blocks.$1.downsamplers.0.')
      .replace(/^decoder\.up\.(\d+)\.block\./, (_, level) => `decoder.up_blocks.${last - level}.resnets.`)
      .replace(/^decoder\.up\.(\d+)\.upsample\./, (_, level) => `decoder.up_blocks.${last - level}.upsamplers.0.`)
      .replace(/\.mid\.block_([12])\./, (_, block) => `.mid_block.resnets.${block - 1}.`)
      .replace('.mid.attn_1.', '.mid_block.attentions.0.')
      .replace('.nin_shortcut', '.conv_shortcut')
      .replace(/coder\.norm_out$/, 'coder.conv_norm_out')
      // In FLUX.2 they are of the encoder and of the decoder.
      .replace(/^(?:en|de)coder\.(?=(?:post_)?quant_conv$)/, '')
      .replace(/(?<=\.attentions\.0\.)[a-z_]+$/, (inner) => attentionNames[inner] ?? inner);
    return path + parameter;
  });
  // In LDM attention is of 1 x 1 convolutions.
  for (const [name, tensor] of found)
    if (/\.to_(?:[qkv]|out\.0)\.weight$/.test(name)) found.set(name, { ...tensor, shape: tensor.shape.slice(0, 2) });
  return found;
}

const openClipNames: readonly [RegExp, string][] = [
  [/^token_embedding/, 'text_model.embeddings.token_embedding'],
  [/^positional_embedding$/, 'text_model.embeddings.position_embedding.weight'],
  [/^ln_final/, 'text_model.final_layer_norm'],
  [/^transformer\.resblocks/, 'text_model.encoder.layers'],
  [/\.ln_([12])\./, '.layer_norm$1.'],
  [/\.mlp\.c_fc\./, '.mlp.fc1.'],
  [/\.mlp\.c_proj\./, '.mlp.fc2.'],
  [/\.attn\./, '.self_attn.'],
];

function textEncoderTensors(tensors: NamedTensors): NamedTensors {
  if (!tensors.has('positional_embedding'))
    // transformers 5 and some tools write the names without the first part.
    return renamed(tensors, (name) => name.replace(/^(?=(?:embeddings|encoder|final_layer_norm)\.)/, 'text_model.'));
  const found = new Map<string, NamedTensor>();
  for (const [name, tensor] of tensors) {
    const path = openClipNames.reduce((at, [from, to]) => at.replace(from, to), name);
    const [, layer, parameter] = /^(.+)\.in_proj_(weight|bias)$/.exec(path) ?? [];
    if (layer) {
      const width = tensor.shape[0] / 3;
      for (const [i, one] of ['q_proj', 'k_proj', 'v_proj'].entries())
        found.set(`${layer}.${one}.${parameter}`, rowsOf(tensor, i * width, (i + 1) * width));
    } else if (path === 'text_projection')
      found.set(`${path}.weight`, { ...tensor, shape: tensor.shape.toReversed(), isTransposed: true });
    else found.set(path, tensor);
  }
  return found;
}
