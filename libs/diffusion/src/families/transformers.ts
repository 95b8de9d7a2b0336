import { join } from 'node:path';
import { autoencoderKlFlux2ConfigOf } from '../architectures/autoencoder-kl-flux2';
import { qwen3ConfigOf } from '../architectures/qwen3-model';
import { AutoencoderFiles } from '../autoencoders/autoencoder';
import { cures, ModelFolderError } from '../errors';
import { QwenConditionerFiles, type QwenUse } from '../conditioners/qwen-conditioner';
import { QwenTokenizer } from '../tokenizer/qwen-tokenizer';
import type { NamedTensors } from '../weights/named-tensor';
import type { ReadFiles } from './family';
import { configOf, scalingOf } from './read-config';

/** What the families of transformers have in common. */
export const parts = { transformer: 'transformer', text_encoder: 'text encoder', vae: 'autoencoder' };

/** What none of them can do. */
export const cannotAll = {
  control: 'There are no ControlNets for it here.',
  prompt_weighting: 'It reads whole sentences, and knows no weights of words.',
  textual_inversion: 'Its text encoder takes no words of embeddings.',
  training: 'Models of this kind cannot be trained here yet.',
};

/** Qwen3 as a family reads it; what it does not use of the encoder is left out. */
export async function qwenOf(files: ReadFiles, readingOf: (layers: number) => QwenUse): Promise<QwenConditionerFiles> {
  const config = configOf(files, 'text_encoder', qwen3ConfigOf) ?? qwen3ConfigOf({});
  const tokenizer = await QwenTokenizer.load(join(files.path, 'tokenizer'));
  const all = files.tensors.get('text_encoder')!;
  const layerOf = (name: string): number => Number(/(?:^|\.)layers\.(\d+)\./.exec(name)?.[1] ?? -1);
  const file = files.files.get('text_encoder')!;
  const layers = 1 + Math.max(...[...all.keys()].map(layerOf));
  const use = readingOf(layers);
  const depth = Math.max(...use.layers);
  // Behind the last layer the states are normalised, which nothing here wants.
  if (depth >= layers || depth < 1)
    throw new ModelFolderError(file, `has ${layers} layers, and more than ${depth} are needed`, cures.oneModel);
  const isUsed = (name: string): boolean => {
    const layer = layerOf(name);
    return layer < 0 ? name.endsWith('embed_tokens.weight') : layer < depth;
  };
  const used: NamedTensors = new Map([...all].filter(([name]) => isUsed(name)));
  return new QwenConditionerFiles(used, file, config, tokenizer, use);
}

/** @param usual how its latents are scaled where its configuration does not say */
export function autoencoderOf(files: ReadFiles, usual: AutoencoderFiles['scaling']): AutoencoderFiles {
  const config = configOf(files, 'vae', autoencoderKlFlux2ConfigOf);
  return new AutoencoderFiles(files.tensors.get('vae')!, files.files.get('vae')!, scalingOf(files, usual), config);
}
