/** transformers' `models/clip/modeling_clip.py`: the text encoders of Stable Diffusion 1.x, 2.x and XL. */
import type { Value } from '../graph/graph';
import { attend } from '../graph/attention';
import { gelu, layerNorm, linear } from '../graph/layers';
import { microsoft } from '../graph/graph-builder';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { assertKnown, type ConfigJson, counts, numberOf } from './config';
import { UnsupportedConfigError } from '../errors';

/** Values that no weight's shape tells, in the words of `config.json`. */
export interface ClipTextConfig {
  /** By default one for each 64 channels. */
  numAttentionHeads?: number;
  /** The weights may have more, which are read too. */
  numHiddenLayers?: number;
  hiddenAct: 'quick_gelu' | 'gelu';
  /** Token whose hidden state stands for the text; 2 stands for the largest id, as in configurations before 2023. */
  eosTokenId: number;
}

/** The values of a text encoder's `config.json`. @throws UnsupportedConfigError */
export function clipTextConfigOf(json: ConfigJson): ClipTextConfig {
  assertKnown(json, { hidden_act: ['quick_gelu', 'gelu'], layer_norm_eps: [1e-5] });
  return {
    numAttentionHeads: numberOf(json, 'num_attention_heads', undefined, counts),
    numHiddenLayers: numberOf(json, 'num_hidden_layers', undefined, counts),
    hiddenAct: (json.hidden_act as ClipTextConfig['hiddenAct'] | undefined) ?? 'quick_gelu',
    eosTokenId: numberOf(json, 'eos_token_id', 2, { ...counts, least: 0 }),
  };
}

/** Outputs of a graph: more outputs are other graphs, because each is computed whether it is asked for or not. */
export interface ClipTextOutputs {
  /**
   * How many of the last layers each `hidden_states.<skip>` leaves out. Layers that none needs are left out of the
   * graph.
   */
  skips: readonly number[];
  /** Whether these are normalised as the last one is. */
  isNormed: boolean;
  /** Whether it gives `text_embeds` too: the projection of the last state of the text's end. */
  isPooled?: boolean;
}

/**
 * Inputs: `input_ids` [batch, tokens], at most as many tokens as there are positions; `token_vectors` [vectors, width],
 * perhaps none, which are the embeddings of the ids after the vocabulary.
 * Outputs: `hidden_states.<skip>` [batch, tokens, width], `text_embeds` [batch, projected width].
 */
export function clipTextModel(
  options: ModuleOptions,
  config: ClipTextConfig,
  { skips, isNormed, isPooled = false }: ClipTextOutputs,
): BuiltGraph {
  const root = Module.of(options);
  const m = root.at('text_model');
  const ids = m.input('input_ids', ['batch', 'tokens'], 'int64');
  const [vocabulary, width] = m.shape('embeddings.token_embedding.weight', 2);
  const heads = config.numAttentionHeads ?? width / 64;
  const layers = m.list('encoder.layers');
  const { numHiddenLayers = layers.length } = config;
  if (width % heads !== 0)
    throw new UnsupportedConfigError(`"num_attention_heads" is ${heads}, and by the weights a token is ${width} wide.`);
  if (layers.length < numHiddenLayers)
    throw new UnsupportedConfigError(
      `"num_hidden_layers" is ${numHiddenLayers}, and the weights have ${layers.length} layers.`,
    );
  const depth = isPooled ? layers.length : layers.length - Math.min(...skips);
  let x = m.add(tokenEmbedding(m, ids, vocabulary, width), positions(m, ids));
  const normed = (state: Value): Value => layerNorm(m, state, 'final_layer_norm');
  for (let i = 0; i <= depth; i++) {
    const skip = layers.length - i;
    if (skips.includes(skip)) m.output(`hidden_states.${skip}`, isNormed ? normed(x) : x, ['batch', 'tokens', width]);
    if (i < depth) x = clipEncoderLayer(layers[i], x, heads, config.hiddenAct, true);
  }
  if (isPooled) {
    const end = m.op('Unsqueeze', [endOfText(m, ids, vocabulary, config.eosTokenId), m.integers([1])]);
    const pooled = m.op('GatherND', [normed(x), end], { batch_dims: 1 });
    const [projected] = root.shape('text_projection.weight');
    const y = linear(root, root.reshape(pooled, 0, 1, width), 'text_projection', true);
    root.output('text_embeds', root.reshape(y, 0, projected), ['batch', projected]);
  }
  return root.finish();
}

function tokenEmbedding(m: Module, ids: Value, vocabulary: number, width: number): Value {
  const name = 'embeddings.token_embedding.weight';
  // Rows of 8-bit numbers cannot be looked up.
  const table = m.tensor(name).type.startsWith('F8') ? m.weight(name) : m.table(name);
  const known = (from: Value): Value => m.cast(m.op('Gather', [table, from], { axis: 0 }));
  const vectors = m.input('token_vectors', ['vectors', width]);
  return m.whenFilled(
    vectors,
    () => {
      const [zero, end] = [m.integers([0]), m.integers([vocabulary])];
      const isKnown = m.op('Less', [ids, end]);
      const learned = m.op('Gather', [vectors, m.op('Where', [isKnown, zero, m.op('Sub', [ids, end])])], { axis: 0 });
      const condition = m.op('Unsqueeze', [isKnown, m.integers([2])]);
      return m.op('Where', [condition, known(m.op('Where', [isKnown, ids, zero])), learned]);
    },
    () => known(ids),
  );
}

function positions(m: Module, ids: Value): Value {
  const tokens = m.op('Shape', [ids], { start: 1 });
  const table = m.weight('embeddings.position_embedding.weight');
  return m.op('Slice', [table, m.integers([0]), tokens]);
}

/** Where the text ends: the first place of its last token. [batch] */
function endOfText(m: Module, ids: Value, vocabulary: number, eosTokenId: number): Value {
  const isEnd = (): Value => m.op('Equal', [ids, m.integers([eosTokenId])]);
  const known = (): Value => m.op('Where', [m.op('Less', [ids, m.integers([vocabulary])]), ids, m.integers([0])]);
  const scores = m.cast(eosTokenId === 2 ? known() : isEnd(), 'float32');
  return m.op('ArgMax', [scores], { axis: 1, keepdims: 0 });
}

/** A layer of CLIP's encoders. @param isCausal whether a token attends only to those before it, as those of texts do */
export function clipEncoderLayer(
  m: Module,
  x: Value,
  heads: number,
  hiddenAct: ClipTextConfig['hiddenAct'],
  isCausal: boolean,
): Value {
  const own = layerNorm(m, x, 'layer_norm1');
  const projected = ['q_proj', 'k_proj', 'v_proj'].map((name) => linear(m.at('self_attn'), own, name));
  const [width] = m.shape('layer_norm1.weight');
  const y = m.add(linear(m.at('self_attn'), attend(m, projected, width, heads, isCausal), 'out_proj'), x);
  const inner = linear(m.at('mlp'), layerNorm(m, y, 'layer_norm2'), 'fc1');
  const active = hiddenAct === 'gelu' ? gelu(m, inner) : m.op('QuickGelu', [inner], { alpha: 1.702 }, microsoft);
  return m.add(linear(m.at('mlp'), active, 'fc2'), y);
}
