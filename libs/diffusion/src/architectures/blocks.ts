/**
 * Blocks that several architectures share, in the words of diffusers' `models/resnet.py`, `attention.py`,
 * `transformers/transformer_2d.py`, `downsampling.py` and `upsampling.py`. Pictures are [rows, channels, height,
 * width], tokens [rows, tokens, width].
 */
import type { Value } from '../graph/graph';
import { attend } from '../graph/attention';
import { conv, gelu, groupNorm, layerNorm, linear, silu } from '../graph/layers';
import type { Module } from '../graph/module';
import { UnsupportedConfigError } from '../errors';

/** Values of normalisation over groups of channels that no weight's shape tells. */
export interface NormConfig {
  groups: number;
  epsilon: number;
}

/**
 * Sines and cosines of falling frequencies: of t [rows, n] it gives [rows, 1, n * width].
 * Source: `get_timestep_embedding` of diffusers' `models/embeddings.py`.
 */
export function timestepEmbedding(m: Module, t: Value, width: number, flipSinToCos: boolean, freqShift: number): Value {
  const half = width / 2;
  const { fround } = Math;
  const frequency = (i: number): number =>
    Math.exp(fround(fround(fround(-Math.log(10_000)) * i) / fround(half - freqShift)));
  const frequencies = Array.from({ length: half }, (_, i) => frequency(i));
  const angles = m.mul(m.op('Unsqueeze', [t, m.integers([2])]), m.exactly(`frequencies(${width})`, frequencies));
  const parts = [m.op('Sin', [angles]), m.op('Cos', [angles])];
  const embedded = m.concat(flipSinToCos ? parts.toReversed() : parts, 2);
  return m.inPrecision(m.reshape(embedded, 0, 1, -1));
}

/** @param emb the time embedding [rows, 1, width] after its activation, where there is one */
export function resnetBlock2D(m: Module, x: Value, { groups, epsilon }: NormConfig, emb?: Value): Value {
  let y = conv(m, silu(m, groupNorm(m, x, 'norm1', groups, epsilon)), 'conv1');
  if (emb) {
    const time = m.reshape(linear(m, emb, 'time_emb_proj', true), 0, -1, 1, 1);
    const [channels] = m.shape('conv1.weight');
    if (m.shape('time_emb_proj.weight')[0] === channels) {
      y = groupNorm(m, m.add(y, time), 'norm2', groups, epsilon);
    } else {
      // resnet_time_scale_shift: scale_shift
      const [scale, shift] = m.ops('Split', 2, [time, m.integers([channels, channels])], { axis: 1 });
      const normed = groupNorm(m, y, 'norm2', groups, epsilon);
      y = m.add(m.mul(normed, m.add(scale, m.number(1))), shift);
    }
  } else y = groupNorm(m, y, 'norm2', groups, epsilon);
  y = conv(m, silu(m, y), 'conv2');
  return m.add(m.has('conv_shortcut') ? conv(m, x, 'conv_shortcut') : x, y);
}

/** Attention of tokens `x` to `context`. @throws UnsupportedConfigError for heads of which it has not so many */
export function attention(m: Module, x: Value, context: Value, heads: number): Value {
  const [width] = m.shape('to_q.weight', 2);
  if (width % heads !== 0)
    throw new UnsupportedConfigError(`"attention_head_dim" is ${heads}, and ${m.path} is ${width} wide.`);
  const projected = [linear(m, x, 'to_q'), linear(m, context, 'to_k'), linear(m, context, 'to_v')];
  return linear(m, attend(m, projected, width, heads), 'to_out.0');
}

function basicTransformerBlock(m: Module, x: Value, context: Value, heads: number): Value {
  const own = layerNorm(m, x, 'norm1');
  let y = m.add(attention(m.at('attn1'), own, own, heads), x);
  y = m.add(attention(m.at('attn2'), layerNorm(m, y, 'norm2'), context, heads), y);
  const [inner] = m.shape('ff.net.0.proj.weight', 2);
  const projected = linear(m, layerNorm(m, y, 'norm3'), 'ff.net.0.proj');
  const [hidden, gate] = m.ops('Split', 2, [projected, m.integers([inner / 2, inner / 2])], { axis: 2 });
  return m.add(linear(m, m.mul(hidden, gelu(m, gate)), 'ff.net.2'), y);
}

export function transformer2DModel(m: Module, x: Value, context: Value, heads: number, groups: number): Value {
  const isLinear = m.shape('proj_in.weight').length === 2;
  const [inner] = m.shape('proj_in.weight');
  const toTokens = (pixels: Value): Value => m.transpose(m.reshape(pixels, 0, inner, -1), 0, 2, 1);
  const toPixels = (tokens: Value): Value => m.op('Reshape', [m.transpose(tokens, 0, 2, 1), m.op('Shape', [x])]);
  const normed = groupNorm(m, x, 'norm', groups, 1e-6);
  let y = isLinear ? linear(m, toTokens(normed), 'proj_in') : toTokens(conv(m, normed, 'proj_in'));
  for (const block of m.list('transformer_blocks')) y = basicTransformerBlock(block, y, context, heads);
  return m.add(isLinear ? toPixels(linear(m, y, 'proj_out')) : conv(m, toPixels(y), 'proj_out'), x);
}

export const downsample2D = (m: Module, x: Value): Value => conv(m, x, 'conv', { stride: 2 });

/** Twice the size, or that of `like`, which may have one row or column less. */
export function upsample2D(m: Module, x: Value, like?: Value): Value {
  const modes = { mode: 'nearest', coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' };
  const sizes = like && m.concat([m.op('Shape', [x], { end: 2 }), m.op('Shape', [like], { start: 2 })], 0);
  const y = sizes
    ? m.op('Resize', [x, '', '', sizes], modes)
    : m.op('Resize', [x, '', m.exactly('twice', [1, 1, 2, 2])], modes);
  return m.has('conv') ? conv(m, y, 'conv') : y;
}
