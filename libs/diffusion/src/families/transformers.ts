import { join } from 'node:path';
import type { ConfigJson } from '../architectures/config';
import { decoderModel, type DecoderConfig } from '../architectures/decoder-model';
import { qwen3ConfigOf } from '../architectures/qwen3-model';
import { cures, ModelFolderError } from '../errors';
import { LanguageModelConditionerFiles, type TextReading } from '../conditioners/language-model-conditioner';
import { LanguageModelTokenizer } from '../tokenizer/language-model-tokenizer';
import type { JsonObject } from '../weights/folder-files';
import { type NamedTensors, tensorsBelow } from '../weights/named-tensor';
import type { PartTensors } from '../weights/original-names';
import type { ReadFiles } from './family';
import { configOf } from './read-config';

/** What the families of transformers have in common. */
export const parts = { transformer: 'transformer', text_encoder: 'text encoder', vae: 'autoencoder' };

/** What none of them can do. */
export const cannotAll = {
  control: 'There are no ControlNets for it here.',
  prompt_weighting: 'It reads whole sentences, and knows no weights of words.',
  textual_inversion: 'Its text encoder takes no words of embeddings.',
};

/** The configurations of an autoencoder and of Qwen3 that come without any. */
export function usualConfigs(tensors: PartTensors): Record<string, JsonObject> {
  // No shape tells it; it divides the channels of each level.
  const channels = tensors.get('vae')?.get('decoder.conv_norm_out.weight')?.shape[0] ?? 128;
  return {
    'text_encoder/config.json': { model_type: 'qwen3' },
    'vae/config.json': { norm_num_groups: Math.min(32, channels) },
  };
}

/** How a family reads texts with a language model. */
export interface LayersReading extends TextReading {
  /** Layers of which the incoming states are given side by side. */
  layers: readonly number[];
}

const [beginOfTurn, endOfTurn] = ['<|im_start|>', '<|im_end|>'];

/**
 * A text as Qwen3's chat template writes it: the turn of the user, and the beginning of the answer. Without thinking the
 * answer begins with no thoughts. Source: `chat_template` of Qwen3's `tokenizer_config.json`, with one message and
 * `add_generation_prompt`.
 */
export function qwen3Prompt(text: string, { enableThinking }: { enableThinking: boolean }): string {
  const answer = enableThinking ? '' : '<think>\n\n</think>\n\n';
  return `${beginOfTurn}user\n${text}${endOfTurn}\n${beginOfTurn}assistant\n${answer}`;
}

/** The tokenizer of a Qwen3. */
export const qwen3Tokenizer = (folder: string): Promise<LanguageModelTokenizer> =>
  LanguageModelTokenizer.load(folder, [beginOfTurn, endOfTurn]);

/** Values of a token that are in memory at once, as a multiple of the widths of a layer. */
const liveValues = 3;

/** A kind of language model. */
export interface LanguageModel {
  configOf: (json: ConfigJson) => DecoderConfig;
  tokenizerOf: (folder: string) => Promise<LanguageModelTokenizer>;
  /** What the names of its weights begin with, where the file has others too. */
  prefix?: string;
}

const qwen3: LanguageModel = { configOf: qwen3ConfigOf, tokenizerOf: qwen3Tokenizer };

/** Qwen3 as a family reads it. */
export const qwen3Of = (
  files: ReadFiles,
  readingOf: (layers: number) => LayersReading,
): Promise<LanguageModelConditionerFiles> => languageModelOf(files, qwen3, readingOf);

/** A language model as a family reads it; what it does not use of the encoder is left out. */
export async function languageModelOf(
  files: ReadFiles,
  model: LanguageModel,
  readingOf: (layers: number) => LayersReading,
): Promise<LanguageModelConditionerFiles> {
  const config = configOf(files, 'text_encoder', model.configOf) ?? model.configOf({});
  const tokenizer = await model.tokenizerOf(join(files.path, 'tokenizer'));
  const all = tensorsBelow(files.tensors.get('text_encoder')!, model.prefix ?? '');
  const layerOf = (name: string): number => Number(/(?:^|\.)layers\.(\d+)\./.exec(name)?.[1] ?? -1);
  const file = files.files.get('text_encoder')!;
  const found = 1 + Math.max(...[...all.keys()].map(layerOf));
  // Those behind the last one that is used may be left out.
  const { numHiddenLayers: count = found } = config;
  const { layers, ...reading } = readingOf(count);
  const depth = Math.max(...layers);
  // Behind the last layer the states are normalised, which nothing here wants.
  if (depth >= count || depth < 1)
    throw new ModelFolderError(file, `has ${count} layers, and more than ${depth} are needed`, cures.oneModel);
  if (found > count)
    throw new ModelFolderError(file, `has ${found} layers, and its config.json says ${count}`, cures.oneModel);
  const isUsed = (name: string): boolean => {
    const layer = layerOf(name);
    return layer < 0 ? name.endsWith('embed_tokens.weight') : layer < depth;
  };
  const used: NamedTensors = new Map([...all].filter(([name]) => isUsed(name)));
  const shapeOf = (name: string) => (used.get(`model.${name}`) ?? used.get(name))?.shape ?? [0, 0];
  const [inner, width] = shapeOf('layers.0.mlp.gate_proj.weight');
  const [heads] = shapeOf('layers.0.self_attn.q_proj.weight');
  return new LanguageModelConditionerFiles(used, file, tokenizer, {
    ...reading,
    build: (options) => decoderModel(options, config, layers),
    vocabularySize: shapeOf('embed_tokens.weight')[0],
    tokenWidth: liveValues * (2 * inner + 3 * heads + 2 * width) + 2 * layers.length * width,
  });
}
