/** diffusers' `models/autoencoders/autoencoder_kl.py` and `vae.py`: pictures to latents and back. */
import type { Value } from '../graph/graph';
import { attend } from '../graph/attention';
import { conv, groupNorm, linear, silu } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { UnsupportedConfigError } from '../errors';
import { assertKnown, assertStated, type ConfigJson, counts, numberOf } from './config';
import { type NormConfig, resnetBlock2D, upsample2D } from './blocks';

/** Values that no weight's shape tells, in the words of `config.json`. */
export interface AutoencoderKlConfig {
  normNumGroups: number;
  /** All of it: of what the weights' shapes tell it says the same. */
  stated: ConfigJson;
}

/** The values of an autoencoder's `config.json`. @throws UnsupportedConfigError */
export function autoencoderKlConfigOf(json: ConfigJson): AutoencoderKlConfig {
  assertKnown(json, {
    down_block_types: ['DownEncoderBlock2D'],
    up_block_types: ['UpDecoderBlock2D'],
    act_fn: ['silu'],
  });
  return { normNumGroups: numberOf(json, 'norm_num_groups', 32, counts), stated: json };
}

const normOf = ({ normNumGroups }: AutoencoderKlConfig): NormConfig => ({ groups: normNumGroups, epsilon: 1e-6 });

/** `latent_sample` [batch, channels, height, width], as the encoder gives it, to `sample`, from -1 to 1. */
export function autoencoderKlDecoder(options: ModuleOptions, config: AutoencoderKlConfig): BuiltGraph {
  const m = Module.of(options);
  const channels = m.shape('decoder.conv_in.weight', 4)[1];
  const y = decoded(m, m.input('latent_sample', ['batch', channels, 'height', 'width']), config);
  m.output('sample', y, ['batch', m.shape('decoder.conv_out.weight')[0], 'sample:2', 'sample:3']);
  return m.finish();
}

/** `sample` [batch, 3, height, width] from -1 to 1 to `latent_parameters`: means, then logarithms of variances. */
export function autoencoderKlEncoder(options: ModuleOptions, config: AutoencoderKlConfig): BuiltGraph {
  const m = Module.of(options);
  const y = encodedSample(m, config);
  const channels = m.shape('encoder.conv_out.weight')[0];
  m.output('latent_parameters', y, ['batch', channels, 'latent_parameters:2', 'latent_parameters:3']);
  return m.finish();
}

export function decoded(root: Module, latents: Value, config: AutoencoderKlConfig): Value {
  const m = root.at('decoder');
  const norm = normOf(config);
  let x = root.has('post_quant_conv') ? conv(root, latents, 'post_quant_conv') : latents;
  x = middle(m.at('mid_block'), conv(m, x, 'conv_in'), norm);
  const blocks = m.list('up_blocks');
  assertBlocks(config.stated, blocks, 1);
  for (const block of blocks) {
    for (const resnet of block.list('resnets')) x = resnetBlock2D(resnet, x, norm);
    if (block.has('upsamplers')) x = upsample2D(block.at('upsamplers', 0), x);
  }
  return last(m, x, norm);
}

/** Of the input `sample`, as `autoencoderKlEncoder` has it. */
export function encodedSample(root: Module, config: AutoencoderKlConfig): Value {
  const m = root.at('encoder');
  const norm = normOf(config);
  let x = root.input('sample', ['batch', m.shape('conv_in.weight', 4)[1], 'height', 'width']);
  x = conv(m, x, 'conv_in');
  const blocks = m.list('down_blocks');
  assertBlocks(config.stated, blocks, 0);
  for (const block of blocks) {
    for (const resnet of block.list('resnets')) x = resnetBlock2D(resnet, x, norm);
    if (block.has('downsamplers')) x = conv(block.at('downsamplers', 0), x, 'conv', { stride: 2, pads: [0, 0, 1, 1] });
  }
  const y = last(m, middle(m.at('mid_block'), x, norm), norm);
  return root.has('quant_conv') ? conv(root, y, 'quant_conv') : y;
}

/**
 * Refuses weights that lack a block, or layers of one.
 * @param more layers of each block than the configuration says
 */
function assertBlocks({ layers_per_block, block_out_channels: widths }: ConfigJson, blocks: Module[], more: number) {
  if (Array.isArray(widths) && widths.length !== blocks.length)
    throw new UnsupportedConfigError(
      `"block_out_channels" is for ${widths.length} blocks, and the weights have ${blocks.length}.`,
    );
  for (const block of blocks)
    assertStated({ layers_per_block }, { layers_per_block: block.list('resnets').length - more });
}

function middle(m: Module, x: Value, norm: NormConfig): Value {
  const [attention] = m.list('attentions');
  for (const [i, resnet] of m.list('resnets').entries()) {
    x = resnetBlock2D(resnet, x, norm);
    if (i === 0 && attention) x = pixelAttention(attention, x, norm);
  }
  return x;
}

/** Attention of all pixels to each other, with one head. */
function pixelAttention(m: Module, x: Value, { groups, epsilon }: NormConfig): Value {
  const [channels] = m.shape('to_q.weight');
  const tokens = m.transpose(m.reshape(groupNorm(m, x, 'group_norm', groups, epsilon), 0, channels, -1), 0, 2, 1);
  const projected = ['to_q', 'to_k', 'to_v'].map((name) => linear(m, tokens, name));
  const y = m.transpose(linear(m, attend(m, projected, channels, 1), 'to_out.0'), 0, 2, 1);
  return m.add(m.op('Reshape', [y, m.op('Shape', [x])]), x);
}

function last(m: Module, x: Value, { groups, epsilon }: NormConfig): Value {
  return conv(m, silu(m, groupNorm(m, x, 'conv_norm_out', groups, epsilon)), 'conv_out');
}
