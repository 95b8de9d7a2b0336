/**
 * The graph that transformers' `models/qwen3/modeling_qwen3.py` and `models/mistral/modeling_mistral.py` have in
 * common: a language model whose layers' states a picture is drawn by.
 */
import type { Value } from '../graph/graph';
import { attend } from '../graph/attention';
import { headsRmsNorm, linear, rmsNorm, type Rotary, rotaryEmbedding, swiGlu } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { WeightsFileError } from '../weights/named-tensor';
import { assertStated, type ConfigJson } from './config';

/** Values that no weight's shape tells, in the words of `config.json`. */
export interface DecoderConfig {
  rmsNormEps: number;
  /** Width of a head where none of its weights tells. */
  headDim: number;
  /** Of the pairs of a head of this width: by how much a token's place turns each. */
  frequenciesOf: (headDim: number) => readonly number[];
  numHiddenLayers?: number;
  /** All of it: of what the weights' shapes tell it says the same. */
  stated: ConfigJson;
}

/**
 * Inputs: `input_ids` [rows, tokens], `attention_mask` [rows, tokens]: 0 for padding, which stands at the end.
 * Output: `hidden_states` [rows, tokens, width of all layers].
 * @param layers whose inputs are given side by side; what comes after them is not in the graph
 */
export function decoderModel(options: ModuleOptions, config: DecoderConfig, layers: readonly number[]): BuiltGraph {
  const root = Module.of(options);
  const m = root.has('model') ? root.at('model') : root;
  const ids = m.input('input_ids', ['rows', 'tokens'], 'int64');
  const mask = m.input('attention_mask', ['rows', 'tokens'], 'int32');
  const [vocabulary, width] = m.shape('embed_tokens.weight', 2);
  const all = m.list('layers');
  const depth = Math.max(...layers);
  if (depth > all.length)
    throw new WeightsFileError(`The weights have ${all.length} layers; the states before layer ${depth} are needed.`);
  const attn = m.at('layers.0.self_attn');
  const headDim = headDimOf(attn, config);
  const [heads, ofKeys] = ['q', 'k'].map((name) => attn.shape(`${name}_proj.weight`, 2)[0] / headDim);
  assertStated(config.stated, { hidden_size: width, vocab_size: vocabulary, head_dim: headDim });
  assertStated(config.stated, { num_attention_heads: heads, num_key_value_heads: ofKeys });
  const rotary = positions(m, ids, headDim, config.frequenciesOf(headDim));
  const states = [m.cast(m.op('Gather', [m.table('embed_tokens.weight'), ids], { axis: 0 }))];
  for (const layer of all.slice(0, depth)) states.push(decoderLayer(layer, states.at(-1)!, mask, rotary, config));
  const given = layers.map((layer) => states[layer]);
  const y = given.length > 1 ? m.concat(given, 2) : given[0];
  m.output('hidden_states', y, ['rows', 'tokens', width * layers.length]);
  return m.finish();
}

const headDimOf = (attention: Module, config: DecoderConfig): number =>
  attention.has('q_norm') ? attention.shape('q_norm.weight', 1)[0] : config.headDim;

/** Cosines and sines of 0 to the number of tokens. */
function positions(m: Module, ids: Value, headDim: number, frequencies: readonly number[]): Rotary {
  const scalar = (x: Value): Value => m.op('Squeeze', [x, m.integers([0])]);
  const limits = [m.integers([0]), m.op('Shape', [ids], { start: 1 }), m.integers([1])];
  const places = m.op('Range', limits.map(scalar));
  const column = m.op('Unsqueeze', [m.cast(places, 'float32'), m.integers([1])]);
  const angles = m.mul(column, m.exactly(`frequencies(${headDim})`, frequencies));
  return { cos: m.inPrecision(m.op('Cos', [angles])), sin: m.inPrecision(m.op('Sin', [angles])), isInterleaved: false };
}

function decoderLayer(m: Module, x: Value, mask: Value, rotary: Rotary, config: DecoderConfig): Value {
  const normed = (y: Value, name: string): Value => rmsNorm(m, y, name, config.rmsNormEps);
  const y = m.add(x, attention(m.at('self_attn'), normed(x, 'input_layernorm'), mask, rotary, config));
  const mlp = m.at('mlp');
  const forward = normed(y, 'post_attention_layernorm');
  const inner = swiGlu(mlp, linear(mlp, forward, 'gate_proj'), linear(mlp, forward, 'up_proj'));
  return m.add(y, linear(mlp, inner, 'down_proj'));
}

function attention(m: Module, x: Value, mask: Value, rotary: Rotary, config: DecoderConfig): Value {
  const [[width], [ofKeys]] = ['q_proj', 'k_proj'].map((name) => m.shape(`${name}.weight`, 2));
  const isNormed = m.has('q_norm');
  const headDim = headDimOf(m, config);
  const [query, key] = ['q', 'k'].map((name) => {
    const projected = linear(m, x, `${name}_proj`);
    return rotaryEmbedding(
      m,
      isNormed ? headsRmsNorm(m, projected, `${name}_norm`, config.rmsNormEps) : projected,
      rotary,
    );
  });
  const [keys, values] = [key, linear(m, x, 'v_proj')].map((each) => repeated(m, each, headDim, width / ofKeys));
  return linear(m, attend(m, [query, keys, values], width, width / headDim, true, mask), 'o_proj');
}

/** Each head so many times beside itself: a head of keys and values serves several of queries. */
function repeated(m: Module, x: Value, headDim: number, times: number): Value {
  const heads = m.reshape(x, 0, 0, -1, 1, headDim);
  return m.reshape(m.op('Expand', [heads, m.integers([1, 1, 1, times, 1])]), 0, 0, -1);
}
