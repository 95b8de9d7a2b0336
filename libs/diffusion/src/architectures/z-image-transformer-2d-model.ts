/** diffusers' `models/transformers/transformer_z_image.py`: what Z-Image predicts velocities with. */
import type { Value } from '../graph/graph';
import { attend } from '../graph/attention';
import {
  headsRmsNorm,
  linear,
  plainLayerNorm,
  rmsNorm,
  type Rotary,
  rotaryEmbedding,
  silu,
  swiGlu,
} from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { timestepEmbedding } from './blocks';
import { assertKnown, assertStated, type ConfigJson, epsilons, evenNumbersOf, numberOf, thetas } from './config';
import { range, type RotaryConfig, rotaryInputs, type RotaryPositions, rotaryPositions } from './rotary';

/** Values that no weight's shape tells, in the words of `config.json`. */
export interface ZImageTransformerConfig extends RotaryConfig {
  normEps: number;
  tScale: number;
  /** All of it: of what the weights' shapes tell it says the same. */
  stated: ConfigJson;
}

/** The values of a transformer's `config.json`. @throws UnsupportedConfigError */
export function zImageTransformerConfigOf(json: ConfigJson): ZImageTransformerConfig {
  assertKnown(json, { all_patch_size: [2], all_f_patch_size: [1], qk_norm: [true], siglip_feat_dim: [] });
  return {
    axesDims: evenNumbersOf(json, 'axes_dims', [32, 48, 48]),
    ropeTheta: numberOf(json, 'rope_theta', 256, thetas),
    normEps: numberOf(json, 'norm_eps', 1e-5, epsilons),
    tScale: numberOf(json, 't_scale', 1000, { least: 1, most: 1e6 }),
    stated: json,
  };
}

/** A text's tokens, and a picture's, are padded to a multiple of so many with a learned one, to which all attend. */
export const zImageMultiple = 32;

/**
 * Positions of a picture, whose size is that of its latents, its padding and then a text.
 * @param text its tokens, with padding
 */
export function zImagePositions(text: number, height: number, width: number, config: RotaryConfig): RotaryPositions {
  const ofPicture = range(height / 2).flatMap((y) => range(width / 2).map((x) => [text + 1, y, x]));
  const padding = Math.ceil(ofPicture.length / zImageMultiple) * zImageMultiple - ofPicture.length;
  const ofText = range(text).map((token) => [token + 1, 0, 0]);
  const ids = [...ofPicture, ...Array<number[]>(padding).fill([0, 0, 0]), ...ofText];
  return rotaryPositions(ids, config, Math.fround);
}

/**
 * Inputs: `sample` [rows, channels, height, width], `encoder_hidden_states` [rows, text, width], `is_padding` [rows,
 * text, 1], `timestep` [rows] from 0 (noise) to 1, and the positions of picture, its padding and text as `rotary_cos`
 * and `rotary_sin` [positions, half of a head].
 * Output: `out_sample`, the velocity away from noise, of the shape of `sample`.
 */
export function zImageTransformer2DModel(options: ModuleOptions, config: ZImageTransformerConfig): BuiltGraph {
  const m = Module.of(options);
  const { normEps } = config;
  const [width, patch] = m.shape('all_x_embedder.2-1.weight', 2);
  const shape = ['rows', patch / 4, 'height', 'width'];
  const sample = m.input('sample', shape);
  const [contextWidth] = m.shape('cap_embedder.0.weight', 1);
  const states = m.input('encoder_hidden_states', ['rows', 'text', contextWidth]);
  const isPadding = m.input('is_padding', ['rows', 'text', 1], 'bool');
  for (const name of ['cap_pad_token', 'x_pad_token']) m.shape(name, 2);
  const emb = timeEmbedding(m, config);
  const [headDim] = m.shape('layers.0.attention.norm_q.weight', 1);
  const [layers, ofPictureAlone, ofTextAlone] = ['layers', 'noise_refiner', 'context_refiner'].map((n) => m.list(n));
  assertStated(config.stated, { n_layers: layers.length, n_refiner_layers: ofPictureAlone.length });
  assertStated(config.stated, { n_refiner_layers: ofTextAlone.length, in_channels: patch / 4 });
  assertStated(config.stated, { dim: width, n_heads: width / headDim, cap_feat_dim: contextWidth });
  const rotary = rotaryInputs(m, headDim, config, 'axes_dims');

  const patches = patched(m, sample);
  const embedded = linear(m, m.reshape(patches, 0, -1, patch), 'all_x_embedder.2-1');
  const known = linear(m, rmsNorm(m, states, 'cap_embedder.0', normEps), 'cap_embedder.1');
  let text = m.op('Where', [isPadding, m.weight('cap_pad_token'), known]);
  const [ofPicture, ofText] = [embedded, text].map((x) => m.op('Shape', [x], { start: 1, end: 2 }));
  const padded = m.op('Sub', [m.op('Shape', [rotary.cos], { start: 0, end: 1 }), ofText]);
  let picture = m.concat([embedded, padding(m, sample, m.op('Sub', [padded, ofPicture]))], 1);

  const lengths = m.concat([padded, ofText], 0);
  const [cos, sin] = [rotary.cos, rotary.sin].map((x) => m.ops('Split', 2, [x, lengths], { axis: 0 }));
  const [rotaryOfPicture, rotaryOfText] = [0, 1].map((i) => ({ ...rotary, cos: cos[i], sin: sin[i] }));
  for (const block of ofPictureAlone) picture = transformerBlock(block, picture, rotaryOfPicture, normEps, emb);
  for (const block of ofTextAlone) text = transformerBlock(block, text, rotaryOfText, normEps);
  let x = m.concat([picture, text], 1);
  for (const block of layers) x = transformerBlock(block, x, rotary, normEps, emb);

  const last = m.at('all_final_layer.2-1');
  const scale = linear(last, silu(last, emb), 'adaLN_modulation.1', true);
  const scaled = m.mul(plainLayerNorm(last, x, width, 1e-6), m.add(scale, m.number(1)));
  // Of all tokens: ONNX Runtime divides a product of fewer rows than columns in another way, with other bits.
  const y = m.op('Slice', [linear(last, scaled, 'linear'), m.integers([0]), ofPicture, m.integers([1])]);
  m.output('out_sample', unpatched(m, y, patches, sample), shape);
  return m.finish();
}

/** [rows, channels, height, width] to [rows, height / 2, width / 2, 2, 2, channels]. */
function patched(m: Module, x: Value): Value {
  const columns = m.transpose(m.reshape(x, 0, 0, 0, -1, 2), 0, 3, 4, 1, 2);
  return m.transpose(m.reshape(columns, 0, 0, 0, 0, -1, 2), 0, 4, 1, 5, 2, 3);
}

function unpatched(m: Module, tokens: Value, patches: Value, sample: Value): Value {
  const y = m.transpose(m.op('Reshape', [tokens, m.op('Shape', [patches])]), 0, 5, 1, 3, 2, 4);
  return m.op('Reshape', [y, m.op('Shape', [sample])]);
}

/** So many tokens behind a picture's, perhaps none. */
function padding(m: Module, sample: Value, count: Value): Value {
  const rows = m.op('Shape', [sample], { start: 0, end: 1 });
  return m.op('Expand', [m.weight('x_pad_token'), m.concat([rows, count, m.integers([1])], 0)]);
}

/** [rows, 1, width] */
function timeEmbedding(m: Module, { tScale }: ZImageTransformerConfig): Value {
  const timestep = m.reshape(m.input('timestep', ['rows'], 'float32', true), 0, 1);
  const mlp = m.at('t_embedder.mlp');
  const scaled = m.mul(timestep, m.exactly(`number(${tScale})`, [tScale], []));
  const t = timestepEmbedding(m, scaled, mlp.shape('0.weight', 2)[1], true, 0);
  return linear(mlp, silu(mlp, linear(mlp, t, '0', true)), '2', true);
}

/** @param emb the embedding of the time, where the block has a modulation */
function transformerBlock(m: Module, x: Value, rotary: Rotary, eps: number, emb?: Value): Value {
  const [width] = m.shape('attention_norm1.weight', 1);
  const parts = emb && m.split(linear(m, emb, 'adaLN_modulation.0', true), width, width, width, width);
  const [attentionScale, attentionGate, scale, gate] = parts ?? [];
  const scaled = (y: Value, by?: Value): Value => (by ? m.mul(y, m.add(by, m.number(1))) : y);
  const gated = (y: Value, by?: Value): Value => (by ? m.mul(y, m.op('Tanh', [by])) : y);

  const attended = attention(m.at('attention'), scaled(rmsNorm(m, x, 'attention_norm1', eps), attentionScale), rotary);
  x = m.add(x, gated(rmsNorm(m, attended, 'attention_norm2', eps), attentionGate));
  const forward = m.at('feed_forward');
  const normed = scaled(rmsNorm(m, x, 'ffn_norm1', eps), scale);
  const inner = swiGlu(forward, linear(forward, normed, 'w1'), linear(forward, normed, 'w3'));
  return m.add(x, gated(rmsNorm(m, linear(forward, inner, 'w2'), 'ffn_norm2', eps), gate));
}

function attention(m: Module, x: Value, rotary: Rotary): Value {
  const [[width], [headDim]] = [m.shape('to_q.weight', 2), m.shape('norm_q.weight', 1)];
  const [query, key] = ['q', 'k'].map((name) =>
    rotaryEmbedding(m, headsRmsNorm(m, linear(m, x, `to_${name}`), `norm_${name}`, 1e-5), rotary),
  );
  return linear(m, attend(m, [query, key, linear(m, x, 'to_v')], width, width / headDim), 'to_out.0');
}
