/** transformers' `models/mistral3/configuration_mistral3.py`: Ministral 3, the text encoder of ERNIE-Image. */
import { assertKnown, type ConfigJson, counts, epsilons, numberOf, thetas } from './config';
import type { DecoderConfig } from './decoder-model';
import { range } from './rotary';

/**
 * The values of a text encoder's `config.json`, which also describes eyes that nothing here uses.
 * @throws UnsupportedConfigError
 */
export function mistralConfigOf(json: ConfigJson): DecoderConfig {
  assertKnown(json, { model_type: ['mistral3'] });
  const text = (json.text_config ?? {}) as ConfigJson;
  assertKnown(text, { model_type: ['mistral', 'ministral3'], hidden_act: ['silu'], sliding_window: [] });
  return {
    rmsNormEps: numberOf(text, 'rms_norm_eps', 1e-5, epsilons),
    headDim: numberOf(text, 'head_dim', 128, counts),
    frequenciesOf: yarnFrequencies((text.rope_parameters ?? {}) as ConfigJson),
    numHiddenLayers: numberOf(text, 'num_hidden_layers', undefined, counts),
    stated: text,
  };
}

/**
 * Frequencies of a model that was taught longer texts after its training: slow ones are slower, by a factor, and those
 * between go over. Peng et al., "YaRN" (2023), section 3.2; as `_compute_yarn_parameters` of transformers, whose factor
 * of the attention is 1 where `mscale` and `mscale_all_dim` are equal. @throws UnsupportedConfigError
 */
function yarnFrequencies(rope: ConfigJson): DecoderConfig['frequenciesOf'] {
  assertKnown(rope, { rope_type: ['yarn'], type: ['yarn'], truncate: [true], attention_factor: [1] });
  assertKnown(rope, { mscale_all_dim: [rope.mscale ?? 1], partial_rotary_factor: [1] });
  const theta = numberOf(rope, 'rope_theta', 1e6, thetas);
  const factor = numberOf(rope, 'factor', 16, { least: 1, most: 1e4 });
  const length = numberOf(rope, 'original_max_position_embeddings', 16384, counts);
  const [fast, slow] = [numberOf(rope, 'beta_fast', 32, turns), numberOf(rope, 'beta_slow', 1, turns)];
  return (headDim) => {
    const dimOf = (rotations: number): number =>
      (headDim * Math.log(length / (rotations * 2 * Math.PI))) / (2 * Math.log(theta));
    const low = Math.max(Math.floor(dimOf(fast)), 0);
    const high = Math.min(Math.ceil(dimOf(slow)), headDim - 1);
    return range(headDim / 2).map((i) => {
      const frequency = 1 / Math.fround(theta ** ((2 * i) / headDim));
      const slowed = Math.min(Math.max((i - low) / (high - low || 0.001), 0), 1);
      return (frequency / factor) * slowed + frequency * (1 - slowed);
    });
  };
}

/** Of how often a pair turns over the length that a model was trained on. */
const turns = { least: 1e-3, most: 1e6 };
