import type { PartName } from '../weights/original-names';
import type { LoadedAdapter } from '../adapters/applied-adapters';
import type { LowRank } from '../adapters/row-adapters';
import type { ClipConditionerFiles } from '../conditioners/clip-conditioner';
import type { ModelFolder } from '../families/model-folder';
import { Generator } from '../random/generator';
import type { FloatTensor } from '../safetensors/write-safetensors';
import { countOf, readValues, rowsOf } from '../weights/named-tensor';
import type { TrainingSettings } from './settings';
import { trainedEncodersOf } from './trainable';
import type { TrainedInput } from './training-graph';

/** The beginnings of trained inputs, and what becomes of them. Values have the order of the inputs. */
export interface TrainedWeights {
  begin(): Float32Array[];
  /** Changes of the model, as a request of `Pipeline` takes them. */
  changes(values: readonly Float32Array[]): Omit<LoadedAdapter, 'bytes'>;
  /** The tensors of a file in diffusers' names, and what its metadata has to say. */
  file(values: readonly Float32Array[]): { tensors: Map<string, FloatTensor>; metadata?: Record<string, string> };
}

/** @param inputs of the training graph */
export async function trainedWeights(
  { denoiser, conditioner }: Pick<ModelFolder, 'denoiser' | 'conditioner'>,
  settings: TrainingSettings,
  inputs: readonly TrainedInput[],
): Promise<TrainedWeights> {
  return settings.kind === 'textual_inversion'
    ? trainedWord(trainedEncodersOf(conditioner), settings)
    : trainedLora(denoiser.part, settings, inputs);
}

function trainedLora(
  denoiser: PartName,
  { seed, rank }: TrainingSettings,
  inputs: readonly TrainedInput[],
): TrainedWeights {
  const layers = inputs.flatMap(({ name, shape: [, ...a] }, i) => {
    const [, part = denoiser, path] = /^(?:(text_encoder(?:_2)?)\.)?(.+)\.lora_A$/.exec(name) ?? [];
    return path === undefined ? [] : [{ part: part, path, a, b: inputs[i + 1].shape.slice(1) }];
  });
  return {
    // The first factors are random and the second ones zero, so that the model is at first as it was.
    begin() {
      const generator = new Generator(seed);
      return layers.flatMap(({ a, b }) => [
        generator.randn(countOf(a)).map((value) => value / rank),
        new Float32Array(countOf(b)),
      ]);
    },
    changes(values) {
      const parts = new Map<PartName, Map<string, LowRank>>();
      for (const [i, { part, path }] of layers.entries()) {
        const [a, b] = [values[2 * i], values[2 * i + 1]].map((own) => own.slice());
        parts.set(part, (parts.get(part) ?? new Map<string, LowRank>()).set(path, { rank, a, b }));
      }
      return { layers: parts, words: [] };
    },
    file(values) {
      const tensors = new Map<string, FloatTensor>();
      const config: Record<string, unknown> = {};
      for (const [i, { part, path, a, b }] of layers.entries()) {
        // The second factor of a convolution is one of 1 x 1.
        const up = a.length === 4 ? [...b, 1, 1] : b;
        tensors.set(`${part}.${path}.lora_A.weight`, { shape: a, values: values[2 * i] });
        tensors.set(`${part}.${path}.lora_B.weight`, { shape: up, values: values[2 * i + 1] });
      }
      for (const part of new Set(layers.map((layer) => layer.part))) {
        const paths = layers.flatMap((layer) => (layer.part === part ? [layer.path] : []));
        // Versions of transformers differ in the paths of text encoders, and agree in the last names.
        const modules =
          part === denoiser ? paths : [...new Set(paths.map((path) => path.slice(path.lastIndexOf('.') + 1)))];
        Object.assign(config, {
          [`${part}.r`]: rank,
          [`${part}.lora_alpha`]: rank,
          [`${part}.target_modules`]: modules,
        });
      }
      return { tensors, metadata: { lora_adapter_metadata: JSON.stringify(config) } };
    },
  };
}

/** Names of an embedding's tensors where a model has two text encoders. */
const namesOfTwo: Readonly<Record<string, string>> = { text_encoder: 'clip_l', text_encoder_2: 'clip_g' };
/** Words that are names of their own in any file: with dots or underscores they could be those of layers. */
const plainWord = /^[<>\p{L}\p{N}-]+$/u;

/** Embeddings of a word for each text encoder. They begin with the mean of what another word has. */
async function trainedWord(
  { encoders }: ClipConditionerFiles,
  { token = '', initializerToken = '', vectors: count = 1 }: TrainingSettings,
): Promise<TrainedWeights> {
  const beginnings: Float32Array[] = [];
  for (const { tokens, table } of encoders) {
    const rows = tokens.tokenize(initializerToken).map((id) => readValues(rowsOf(table, id, id + 1)));
    const known = await Promise.all(rows);
    const mean = known[0].map((_, i) => known.reduce((sum, row) => sum + row[i], 0) / known.length);
    beginnings.push(Float32Array.from({ length: count * mean.length }, (_, i) => mean[i % mean.length]));
  }
  const parts = encoders.map(({ part }) => part);
  return {
    begin: () => beginnings.map((values) => values.slice()),
    changes(values) {
      const vectors = new Map<PartName, Float32Array>(parts.map((part, i) => [part, values[i].slice()]));
      return { layers: new Map(), words: [{ word: token, count, vectors }] };
    },
    file(values) {
      const nameOf = (part: string): string =>
        parts.length > 1 ? namesOfTwo[part] : plainWord.test(token) ? token : 'emb_params';
      const tensors = values.map((own, i): [string, FloatTensor] => [
        nameOf(parts[i]),
        { shape: [count, own.length / count], values: own },
      ]);
      return { tensors: new Map(tensors) };
    },
  };
}
