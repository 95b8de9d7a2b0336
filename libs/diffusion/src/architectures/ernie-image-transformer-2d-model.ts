/** diffusers' `models/transformers/transformer_ernie_image.py`: what ERNIE-Image predicts velocities with. */
import type { Value } from '../graph/graph';
import { attend } from '../graph/attention';
import { gelu, headsRmsNorm, linear, plainLayerNorm, rmsNorm, silu } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import type { NamedTensors } from '../weights/named-tensor';
import { timestepEmbedding } from './blocks';
import { assertKnown, assertStated, type ConfigJson, epsilons, evenNumbersOf, numberOf, thetas } from './config';
import {
  type LatentSize,
  range,
  type RotaryConfig,
  rotaryInputs,
  type RotaryPositions,
  rotaryPositions,
} from './rotary';

/** Values that no weight's shape tells, in the words of `config.json`. */
export interface ErnieImageTransformerConfig extends RotaryConfig {
  eps: number;
  /** All of it: of what the weights' shapes tell it says the same. */
  stated: ConfigJson;
}

/** The values of a transformer's `config.json`. @throws UnsupportedConfigError */
export function ernieImageTransformerConfigOf(json: ConfigJson): ErnieImageTransformerConfig {
  assertKnown(json, { patch_size: [1], qk_layernorm: [true] });
  return {
    axesDims: evenNumbersOf(json, 'rope_axes_dim', [32, 48, 48]),
    ropeTheta: numberOf(json, 'rope_theta', 256, thetas),
    eps: numberOf(json, 'eps', 1e-6, epsilons),
    stated: json,
  };
}

/**
 * Positions of a picture, whose size is that of its latents, and then of a text: each as wide as a head. The two values
 * of a pair stand in the halves of a head, and are turned by different angles: an angle is that of two neighbours.
 */
export function ernieImagePositions(
  text: number,
  { height, width }: LatentSize,
  config: RotaryConfig,
): RotaryPositions {
  const ofPicture = range(height).flatMap((y) => range(width).map((x) => [text, y, x]));
  const ofText = range(text).map((token) => [token, 0, 0]);
  const { cos, sin, positions } = rotaryPositions([...ofPicture, ...ofText], config, Math.fround);
  const [headDim, half] = [(2 * cos.length) / positions, cos.length / positions];
  const spread = (values: Float32Array, sign: number): Float32Array =>
    Float32Array.from({ length: positions * headDim }, (_, i) => {
      const within = i % headDim;
      return values[Math.floor(i / headDim) * half + Math.floor(within / 2)] * (within < half ? sign : 1);
    });
  return { cos: spread(cos, 1), sin: spread(sin, -1), positions };
}

/** Cosines, and sines of which those of a head's first half are negative: each [positions, 1, head]. */
interface Turns {
  cos: Value;
  sin: Value;
  headDim: number;
}

/** What all layers scale and shift tokens by, and multiply their results by: each [rows, 1, width]. */
interface Modulation {
  shift: Value;
  /** Already with 1 added. */
  scale: Value;
  gate: Value;
}

/**
 * Inputs: `sample` [rows, channels, height, width], `encoder_hidden_states` [rows, text, width], `timestep` [rows] from
 * 0 to 1000, and the positions of picture and text as `rotary_cos` and `rotary_sin` [positions, head].
 * Output: `out_sample`, the velocity, of the shape of `sample`.
 */
export function ernieImageTransformer2DModel(options: ModuleOptions, config: ErnieImageTransformerConfig): BuiltGraph {
  const m = Module.of({ ...options, tensors: withLinearEmbedder(options.tensors) });
  const { eps } = config;
  const [width, channels] = m.shape('x_embedder.proj.weight', 2);
  const shape = ['rows', channels, 'height', 'width'];
  const sample = m.input('sample', shape);
  const contextWidth = m.has('text_proj') ? m.shape('text_proj.weight', 2)[1] : width;
  const states = m.input('encoder_hidden_states', ['rows', 'text', contextWidth]);
  const emb = timeEmbedding(m);
  const layers = m.list('layers');
  const turns = turnsOf(m, config);
  assertStated(config.stated, { hidden_size: width, in_channels: channels, text_in_dim: contextWidth });
  assertStated(config.stated, { num_layers: layers.length, num_attention_heads: width / turns.headDim });

  const picture = linear(m, m.transpose(m.reshape(sample, 0, channels, -1), 0, 2, 1), 'x_embedder.proj');
  const [ofPicture, ofText] = [picture, states].map((x) => m.op('Shape', [x], { start: 1, end: 2 }));
  // Twice, as a text may be of one token: a product of a single one is summed in another order.
  const projected = m.has('text_proj') && linear(m, m.concat([states, states], 1), 'text_proj');
  const text = projected ? m.op('Slice', [projected, m.integers([0]), ofText, m.integers([1])]) : states;
  const [attention, forward] = modulations(m, silu(m, emb), width);
  let x = m.concat([picture, text], 1);
  for (const layer of layers) {
    x = gated(
      layer,
      x,
      attention,
      selfAttention(layer, modulated(layer, x, 'adaLN_sa_ln', attention, eps), turns, eps),
    );
    x = gated(layer, x, forward, feedForward(layer.at('mlp'), modulated(layer, x, 'adaLN_mlp_ln', forward, eps)));
  }
  const [scale, shift] = m.split(linear(m, emb, 'final_norm.linear', true), width, width);
  const normed = m.add(m.mul(plainLayerNorm(m, x, width, eps), m.add(scale, m.number(1))), shift);
  // Of the text too: ONNX Runtime divides a product of fewer rows than columns in another way, with other bits.
  const y = m.op('Slice', [linear(m, normed, 'final_linear'), m.integers([0]), ofPicture, m.integers([1])]);
  m.output('out_sample', m.op('Reshape', [m.transpose(y, 0, 2, 1), m.op('Shape', [sample])]), shape);
  return m.finish();
}

/** The embedder of latents is stored as a convolution of one of them, which is a linear layer. */
function withLinearEmbedder(tensors: NamedTensors): NamedTensors {
  const name = 'x_embedder.proj.weight';
  const weight = tensors.get(name);
  if (weight?.shape.length !== 4 || weight.shape[2] * weight.shape[3] !== 1) return tensors;
  return new Map(tensors).set(name, { ...weight, shape: weight.shape.slice(0, 2) });
}

/** [rows, 1, width] */
function timeEmbedding(m: Module): Value {
  const timestep = m.reshape(m.input('timestep', ['rows'], 'float32', true), 0, 1);
  const embedding = m.at('time_embedding');
  const t = timestepEmbedding(m, timestep, embedding.shape('linear_1.weight', 2)[1], false, 0);
  return linear(embedding, silu(embedding, linear(embedding, t, 'linear_1', true)), 'linear_2', true);
}

/** @throws UnsupportedConfigError for axes that make other heads */
function turnsOf(m: Module, config: RotaryConfig): Turns {
  const [headDim] = m.shape('layers.0.self_attention.norm_q.weight', 1);
  const inputs = rotaryInputs(m, headDim, config, 'rope_axes_dim', headDim);
  const [cos, sin] = [inputs.cos, inputs.sin].map((x) => m.op('Unsqueeze', [x, m.integers([1])]));
  return { cos, sin, headDim };
}

function modulations(m: Module, emb: Value, width: number): Modulation[] {
  const parts = m.split(linear(m, emb, 'adaLN_modulation.1', true), ...Array<number>(6).fill(width));
  return [0, 3].map((i) => ({ shift: parts[i], scale: m.add(parts[i + 1], m.number(1)), gate: parts[i + 2] }));
}

const modulated = (m: Module, x: Value, norm: string, { shift, scale }: Modulation, eps: number): Value =>
  m.add(m.mul(rmsNorm(m, x, norm, eps), scale), shift);

const gated = (m: Module, x: Value, { gate }: Modulation, y: Value): Value => m.add(x, m.mul(gate, y));

function selfAttention(layer: Module, x: Value, turns: Turns, eps: number): Value {
  const m = layer.at('self_attention');
  const [width] = m.shape('to_q.weight', 2);
  const [query, key] = ['q', 'k'].map((name) =>
    turned(m, headsRmsNorm(m, linear(m, x, `to_${name}`), `norm_${name}`, eps), turns),
  );
  return linear(m, attend(m, [query, key, linear(m, x, 'to_v')], width, width / turns.headDim), 'to_out.0');
}

function turned(m: Module, x: Value, { cos, sin, headDim }: Turns): Value {
  const heads = m.reshape(x, 0, 0, -1, headDim);
  const halves = m.ops('Split', 2, [heads, m.integers([headDim / 2, headDim / 2])], { axis: 3 });
  return m.reshape(m.add(m.mul(heads, cos), m.mul(m.concat(halves.toReversed(), 3), sin)), 0, 0, -1);
}

function feedForward(m: Module, x: Value): Value {
  return linear(m, m.mul(linear(m, x, 'up_proj'), gelu(m, linear(m, x, 'gate_proj'))), 'linear_fc2');
}
