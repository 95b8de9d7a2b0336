import { join } from 'node:path';
import { withProducts } from '../vae/latent-preview';
import { cures, ModelFolderError } from '../errors';
import type { GraphFile } from './graph-file';
import type { ModelFolder } from './model-folder';
import type { JsonObject } from './model-files';

type Parts = Pick<ModelFolder, 'path' | 'unet' | 'vaeDecoder' | 'tokenizer' | 'configs'>;

/**
 * Channels of the latents, the same for the U-Net and the VAE, as far as they are told.
 * @throws ModelFolderError if they differ
 */
export function latentChannels(
  { configs, unet: { path }, vaeDecoder }: Parts,
  facts: { inChannels?: number | undefined; outChannels?: number | undefined } = {},
): number | undefined {
  const ofConfig = positive(configs.vaeDecoder.latent_channels);
  const channels = facts.inChannels ?? positive(configs.unet.in_channels) ?? facts.outChannels ?? ofConfig;
  if (channels === undefined) return undefined;
  if (facts.outChannels && facts.outChannels !== channels)
    throw new ModelFolderError(
      path,
      `takes ${channels} channels and gives ${facts.outChannels}, so it does not draw from text alone`,
      cures.otherModel,
    );
  const foreign = [ofConfig, vaeDecoder.inputChannels].find((one) => one !== undefined && one !== channels);
  if (foreign !== undefined)
    throw new ModelFolderError(
      vaeDecoder.path,
      `takes latents of ${foreign} channels, and the U-Net gives ${channels}`,
      cures.oneExport,
    );
  return channels;
}

/**
 * The tokenizer gives no token that the text encoder does not know, and no more of them than it takes.
 * @param ofGraph length of a row, if the graph of the text encoder fixes it
 * @throws ModelFolderError
 */
export function checkTokenizer({ path, configs, tokenizer }: Parts, ofGraph: number | undefined): void {
  const vocabulary = positive(configs.textEncoder.vocab_size);
  if (vocabulary && tokenizer.vocabularySize > vocabulary)
    throw new ModelFolderError(
      join(path, 'tokenizer'),
      `has ${tokenizer.vocabularySize} tokens, and the text encoder knows ${vocabulary}`,
      cures.oneExport,
    );
  const rowLength = ofGraph ?? positive(configs.textEncoder.max_position_embeddings);
  if (rowLength && tokenizer.maxLength > rowLength)
    throw new ModelFolderError(
      join(path, 'tokenizer'),
      `makes rows of ${tokenizer.maxLength} tokens, and the text encoder takes ${rowLength}`,
      cures.oneExport,
    );
}

/**
 * The one size of latents that the graphs were exported for; no size where they take any.
 * @throws ModelFolderError if they differ
 */
export function fixedSizeOf({ unet, vaeDecoder }: Pick<Parts, 'unet' | 'vaeDecoder'>): GraphFile['fixedLatents'] {
  const [ofUnet, ofVae] = [unet.fixedLatents, vaeDecoder.fixedLatents];
  for (const edge of ['height', 'width'] as const)
    if (ofUnet[edge] !== undefined && ofVae[edge] !== undefined && ofUnet[edge] !== ofVae[edge])
      throw new ModelFolderError(
        vaeDecoder.path,
        `takes latents of ${edge} ${ofVae[edge]}, and the U-Net gives ${ofUnet[edge]}`,
        cures.oneExport,
      );
  return { ...ofVae, ...ofUnet };
}

/**
 * @param channels of the latents; undefined if nothing tells them
 * @throws ModelFolderError if the preview was not made for them
 */
export function checkPreview({ path, preview }: Pick<ModelFolder, 'path' | 'preview'>, channels?: number): void {
  if (preview === undefined || channels === undefined) return;
  const lengths = [channels, withProducts(channels)];
  if (preview.weights.some((row) => !lengths.includes(row.length) || row.length !== preview.weights[0].length))
    throw new ModelFolderError(
      join(path, 'preview.json'),
      `does not have one weight for each of ${channels} channels`,
      cures.correctOrRemove,
    );
}

/** A length that a configuration names, if it names one. */
export function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined;
}

/**
 * Width of the embeddings that the text encoder gives and the U-Net takes, as far as their graphs and configurations
 * tell it.
 * @throws ModelFolderError if two of them differ
 */
export function embeddingWidth({
  path,
  textEncoder,
  unet,
  configs,
}: Pick<ModelFolder, 'path' | 'textEncoder' | 'unet' | 'configs'>): number | undefined {
  const widthOf = (part: string, key: string, config: JsonObject, ofGraph: number | undefined): number | undefined => {
    // diffusers may list a width for each block; those of Stable Diffusion 1.x and 2.x are one number.
    const ofConfig = typeof config[key] === 'number' ? config[key] : undefined;
    if (ofGraph !== undefined && ofConfig !== undefined && ofGraph !== ofConfig)
      throw new ModelFolderError(
        join(path, part, 'config.json'),
        `has a ${key} of ${ofConfig}, and the embeddings of the graph beside it are ${ofGraph} wide`,
        cures.oneExport,
      );
    return ofGraph ?? ofConfig;
  };
  const given = widthOf('text_encoder', 'hidden_size', configs.textEncoder, textEncoder.embeddingWidth);
  const taken = widthOf('unet', 'cross_attention_dim', configs.unet, unet.embeddingWidth);
  if (given !== undefined && taken !== undefined && given !== taken)
    throw new ModelFolderError(
      textEncoder.path,
      `gives embeddings ${given} wide, and the U-Net takes ${taken}`,
      cures.oneExport,
    );
  return taken ?? given;
}
