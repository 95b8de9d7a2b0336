/** transformers' `models/qwen3/configuration_qwen3.py`: the text encoder of FLUX.2 klein and of Z-Image. */
import { assertKnown, type ConfigJson, counts, epsilons, numberOf, thetas } from './config';
import type { DecoderConfig } from './decoder-model';
import { range } from './rotary';

/** The values of a text encoder's `config.json`. @throws UnsupportedConfigError */
export function qwen3ConfigOf(json: ConfigJson): DecoderConfig {
  assertKnown(json, { model_type: ['qwen3'], hidden_act: ['silu'], use_sliding_window: [false], rope_scaling: [] });
  const rope = (json.rope_parameters ?? {}) as ConfigJson;
  assertKnown(rope, { rope_type: ['default'] });
  const theta = numberOf(rope, 'rope_theta', numberOf(json, 'rope_theta', 1e6, thetas), thetas);
  return {
    rmsNormEps: numberOf(json, 'rms_norm_eps', 1e-6, epsilons),
    headDim: 128,
    frequenciesOf: (headDim) => range(headDim / 2).map((i) => 1 / Math.fround(theta ** ((2 * i) / headDim))),
    numHiddenLayers: numberOf(json, 'num_hidden_layers', undefined, counts),
    stated: json,
  };
}
