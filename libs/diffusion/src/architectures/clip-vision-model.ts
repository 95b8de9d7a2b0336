/** The vision model of transformers' `models/clip/modeling_clip.py`, and what diffusers' `safety_checker.py` adds. */
import { UnsupportedConfigError } from '../errors';
import type { Value } from '../graph/graph';
import { conv, layerNorm, linear, matmulTransposed } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { clipEncoderLayer, type ClipTextConfig } from './clip-text-model';
import { assertKnown, type ConfigJson, counts, numberOf } from './config';

/** Values that no weight's shape tells, in the words of `vision_config` in `config.json`. */
export interface ClipVisionConfig extends Pick<ClipTextConfig, 'hiddenAct'> {
  /** By default one for each 64 channels. */
  numAttentionHeads?: number | undefined;
}

/** The values of a safety checker's `config.json`. @throws UnsupportedConfigError */
export function clipVisionConfigOf(json: ConfigJson): ClipVisionConfig {
  const vision = { ...(json.vision_config as ConfigJson), ...(json.vision_config_dict as ConfigJson | null) };
  const known = { hidden_act: ['quick_gelu', 'gelu'], layer_norm_eps: [1e-5], image_size: [visionEdge] };
  assertKnown(vision, { ...known, num_channels: [3] });
  return {
    numAttentionHeads: numberOf(vision, 'num_attention_heads', undefined, counts),
    hiddenAct: (vision.hidden_act as ClipVisionConfig['hiddenAct'] | undefined) ?? 'quick_gelu',
  };
}

/** Edge in pixels of the pictures that it looks at. */
export const visionEdge = 224;

/**
 * diffusers' `StableDiffusionSafetyChecker`, without what its scores mean.
 * Inputs: `pixel_values` [1, 3, 224, 224]. Outputs: `special_scores` [1, special concepts] and `concept_scores`
 * [1, concepts]: how near the picture is to each concept, less the concept's threshold.
 */
export function safetyCheckerModel(options: ModuleOptions, config: ClipVisionConfig): BuiltGraph {
  const root = Module.of(options);
  // As it was released, or as transformers 5 writes it.
  const outer = root.at('vision_model');
  const m = outer.has('vision_model') ? outer.at('vision_model') : outer;
  const [width, , patch] = m.shape('embeddings.patch_embedding.weight', 4);
  const heads = config.numAttentionHeads ?? width / 64;
  if (width % heads !== 0)
    throw new UnsupportedConfigError(`"num_attention_heads" is ${heads}, and by the weights a token is ${width} wide.`);
  const pixels = m.input('pixel_values', [1, 3, visionEdge, visionEdge]);
  const patches = conv(m, pixels, 'embeddings.patch_embedding', { stride: patch, pads: [0, 0, 0, 0] });
  const ofPatches = m.transpose(m.reshape(patches, 0, width, -1), 0, 2, 1);
  const ofPicture = m.reshape(m.weight('embeddings.class_embedding'), 1, 1, width);
  const positions = m.weight('embeddings.position_embedding.weight');
  let x = layerNorm(m, m.add(m.concat([ofPicture, ofPatches], 1), positions), 'pre_layrnorm');
  for (const layer of m.list('encoder.layers')) x = clipEncoderLayer(layer, x, heads, config.hiddenAct, false);
  const [first] = m.ops('Split', 2, [x, m.integers([1, (visionEdge / patch) ** 2])], { axis: 1 });
  const embedded = linear(root, layerNorm(m, first, 'post_layernorm'), 'visual_projection', true);
  for (const [output, concepts] of [
    ['special_scores', 'special_care_embeds'],
    ['concept_scores', 'concept_embeds'],
  ]) {
    const [count, projected] = root.shape(concepts, 2);
    const image = root.reshape(normalised(root, embedded, 2), 1, projected);
    const products = matmulTransposed(root, image, directions(root, concepts), 2);
    const scores = root.op('Sub', [products, root.weight(`${concepts}_weights`)]);
    root.output(output, scores, [1, count]);
  }
  return root.finish();
}

const directions = (m: Module, name: string): Value => normalised(m, m.weight(name), 1);

/** torch.nn.functional.normalize over one axis, but for vectors that are zero. */
function normalised(m: Module, x: Value, axis: number): Value {
  return m.op('Div', [x, m.op('ReduceL2', [x, m.integers([axis])], { keepdims: 1 })]);
}
