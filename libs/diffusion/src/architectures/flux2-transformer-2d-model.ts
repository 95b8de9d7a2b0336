/** diffusers' `models/transformers/transformer_flux2.py`: what FLUX.2 predicts velocities with. */
import type { Value } from '../graph/graph';
import { attend } from '../graph/attention';
import { headsRmsNorm, linear, plainLayerNorm, type Rotary, rotaryEmbedding, silu, swiGlu } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
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
export interface Flux2TransformerConfig extends RotaryConfig {
  eps: number;
  /** All of it: of what the weights' shapes tell it says the same. */
  stated: ConfigJson;
}

/** The values of a transformer's `config.json`. @throws UnsupportedConfigError */
export function flux2TransformerConfigOf(json: ConfigJson): Flux2TransformerConfig {
  assertKnown(json, { patch_size: [1], guidance_embeds: [false] });
  return {
    axesDims: evenNumbersOf(json, 'axes_dims_rope', [32, 32, 32, 32]),
    ropeTheta: numberOf(json, 'rope_theta', 2000, thetas),
    eps: numberOf(json, 'eps', 1e-6, epsilons),
    stated: json,
  };
}

/** Between two pictures that are looked at, and before the first, in the place of time. */
const referenceTime = 10;

/** Positions of a text, a picture, and pictures that it looks at, whose sizes are those of their latents. */
export function flux2Positions(
  text: number,
  size: LatentSize,
  references: readonly LatentSize[],
  config: RotaryConfig,
): RotaryPositions {
  const ofText = range(text).map((token) => [0, 0, 0, token]);
  const ofPictures = [size, ...references].flatMap(({ height, width }, i) =>
    range(height).flatMap((y) => range(width).map((x) => [referenceTime * i, y, x, 0])),
  );
  return rotaryPositions([...ofText, ...ofPictures], config);
}

/** What a token is scaled and shifted by before a layer, and its result is multiplied by: each [rows, 1, width]. */
interface Modulation {
  shift: Value;
  /** Already with 1 added. */
  scale: Value;
  gate: Value;
}

/**
 * Inputs: `sample` [rows, channels, height, width], `references` [rows, positions of the pictures that it looks at,
 * channels], `encoder_hidden_states` [rows, text, width], `timestep` [rows] from 0 to 1, and the positions of text,
 * picture and references as `rotary_cos` and `rotary_sin` [positions, half of a head].
 * Output: `out_sample`, the velocity, of the shape of `sample`.
 */
export function flux2Transformer2DModel(options: ModuleOptions, config: Flux2TransformerConfig): BuiltGraph {
  const m = Module.of(options);
  const { eps } = config;
  const [width, channels] = m.shape('x_embedder.weight', 2);
  const shape = ['rows', channels, 'height', 'width'];
  const sample = m.input('sample', shape);
  const states = m.input('encoder_hidden_states', ['rows', 'text', m.shape('context_embedder.weight', 2)[1]]);
  const [emb, rotary] = [timeEmbedding(m), checkedRotary(m, config)];
  const use = { width, eps, rotary };

  const tokens = m.transpose(m.reshape(sample, 0, channels, -1), 0, 2, 1);
  const references = m.input('references', ['rows', 'looked at', channels]);
  let picture = linear(m, m.concat([tokens, references], 1), 'x_embedder');
  let text = linear(m, states, 'context_embedder');
  const lengths = m.concat(
    [text, picture].map((x) => m.op('Shape', [x], { start: 1, end: 2 })),
    0,
  );
  const sides = ['txt', 'img'].map((side) => modulations(m.at(`double_stream_modulation_${side}`), emb, 2));
  for (const block of m.list('transformer_blocks'))
    [text, picture] = transformerBlock(block, [text, picture], sides, lengths, use);

  let x = m.concat([text, picture], 1);
  const [modulation] = modulations(m.at('single_stream_modulation'), emb, 1);
  for (const block of m.list('single_transformer_blocks')) {
    const y = parallelAttention(block.at('attn'), modulated(block, x, modulation, use), use);
    x = gated(block, x, modulation, y);
  }

  const [scale, shift] = m.split(linear(m, emb, 'norm_out.linear', true), width, width);
  // Of the text too: ONNX Runtime divides a product of fewer rows than columns in another way, with other bits.
  const last = linear(m, modulated(m, x, { scale: m.add(scale, m.number(1)), shift }, use), 'proj_out');
  const [, ofPictures] = m.ops('Split', 2, [last, lengths], { axis: 1 });
  const own = m.op('Shape', [tokens], { start: 1, end: 2 });
  const y = m.op('Slice', [ofPictures, m.integers([0]), own, m.integers([1])]);
  m.output('out_sample', m.op('Reshape', [m.transpose(y, 0, 2, 1), m.op('Shape', [sample])]), shape);
  return m.finish();
}

/** The inputs of positions, once it is known that the configuration is of these weights. @throws UnsupportedConfigError */
function checkedRotary(m: Module, config: Flux2TransformerConfig): Rotary {
  const [width, channels] = m.shape('x_embedder.weight', 2);
  const [headDim] = m.shape('transformer_blocks.0.attn.norm_q.weight', 1);
  assertStated(config.stated, {
    num_layers: m.list('transformer_blocks').length,
    num_single_layers: m.list('single_transformer_blocks').length,
    in_channels: channels,
    attention_head_dim: headDim,
    num_attention_heads: width / headDim,
    joint_attention_dim: m.shape('context_embedder.weight', 2)[1],
  });
  return rotaryInputs(m, headDim, config, 'axes_dims_rope');
}

/** The embedding of the time after its activation: [rows, 1, width]. */
function timeEmbedding(m: Module): Value {
  const timestep = m.reshape(m.input('timestep', ['rows'], 'float32', true), 0, 1);
  const embedder = m.at('time_guidance_embed.timestep_embedder');
  const [, channels] = embedder.shape('linear_1.weight', 2);
  const t = timestepEmbedding(m, m.mul(timestep, m.exactly('number(1000)', [1000], [])), channels, true, 0);
  return silu(m, linear(embedder, silu(m, linear(embedder, t, 'linear_1', true)), 'linear_2', true));
}

function modulations(m: Module, emb: Value, count: number): Modulation[] {
  const width = m.shape('linear.weight', 2)[0] / count / 3;
  const parts = m.split(linear(m, emb, 'linear', true), ...Array<number>(3 * count).fill(width));
  return range(count).map((i) => {
    const [shift, scale, gate] = parts.slice(3 * i);
    return { shift, scale: m.add(scale, m.number(1)), gate };
  });
}

/** Widths and values that all blocks have in common. */
interface BlockUse {
  width: number;
  eps: number;
  rotary: Rotary;
}

/** Names of the layers that a block has for the text, and for the picture. */
const namesOfSides = [
  {
    projections: ['add_q_proj', 'add_k_proj', 'add_v_proj', 'norm_added_q', 'norm_added_k'],
    out: 'to_add_out',
    forward: 'ff_context',
  },
  { projections: ['to_q', 'to_k', 'to_v', 'norm_q', 'norm_k'], out: 'to_out.0', forward: 'ff' },
];

/** Flux2TransformerBlock: tokens of the text and of the picture, which attend to each other. */
function transformerBlock(
  m: Module,
  sides: readonly Value[],
  modulationsOfSides: readonly Modulation[][],
  lengths: Value,
  use: BlockUse,
): Value[] {
  const attn = m.at('attn');
  const [ofText, ofPicture] = sides.map((x, i) =>
    projected(attn, modulated(m, x, modulationsOfSides[i][0], use), namesOfSides[i].projections, use.eps),
  );
  const joined = ofText.map((x, i) => attn.concat([x, ofPicture[i]], 1));
  const attended = m.ops('Split', 2, [attendTurned(attn, joined, use), lengths], { axis: 1 });
  return sides.map((x, i) => {
    const [[attention, forward], names] = [modulationsOfSides[i], namesOfSides[i]];
    const y = gated(m, x, attention, linear(attn, attended[i], names.out));
    return gated(m, y, forward, feedForward(m.at(names.forward), modulated(m, y, forward, use)));
  });
}

const modulated = (m: Module, x: Value, { shift, scale }: Omit<Modulation, 'gate'>, { width, eps }: BlockUse): Value =>
  m.add(m.mul(plainLayerNorm(m, x, width, eps), scale), shift);

const gated = (m: Module, x: Value, { gate }: Modulation, y: Value): Value => m.add(x, m.mul(gate, y));

/** Queries, keys and values of some tokens. */
function projected(m: Module, x: Value, [query, key, value, ...norms]: readonly string[], eps: number): Value[] {
  const normed = [query, key].map((name, i) => headsRmsNorm(m, linear(m, x, name), norms[i], eps));
  return [...normed, linear(m, x, value)];
}

function attendTurned(m: Module, [query, key, value]: readonly Value[], { width, rotary }: BlockUse): Value {
  const heads = width / m.shape('norm_q.weight')[0];
  return attend(m, [rotaryEmbedding(m, query, rotary), rotaryEmbedding(m, key, rotary), value], width, heads);
}

function feedForward(m: Module, x: Value): Value {
  const [, inner] = m.shape('linear_out.weight', 2);
  const [gate, hidden] = m.split(linear(m, x, 'linear_in'), inner, inner);
  return linear(m, swiGlu(m, gate, hidden), 'linear_out');
}

/** Flux2ParallelSelfAttention: attention and a feed-forward layer side by side, between two layers. */
function parallelAttention(m: Module, x: Value, use: BlockUse): Value {
  const { width, eps } = use;
  const inner = m.shape('to_out.weight', 2)[1] - width;
  const layer = linear(m, x, 'to_qkv_mlp_proj');
  const [query, key, value, gate, hidden] = m.split(layer, width, width, width, inner, inner);
  const normed = [headsRmsNorm(m, query, 'norm_q', eps), headsRmsNorm(m, key, 'norm_k', eps), value];
  return linear(m, m.concat([attendTurned(m, normed, use), swiGlu(m, gate, hidden)], 2), 'to_out');
}
