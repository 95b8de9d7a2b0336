import { cures, ModelFolderError } from '../errors';
import type { JsonObject } from '../model/model-files';
import type { ModelFolder } from '../model/model-folder';
import { checkPreview, checkTokenizer, fixedSizeOf, latentChannels, positive } from '../model/parts-fit';
import { schedulerNameOf } from '../schedulers';
import { type PredictionType, readSchedulerConfig } from '../schedulers/scheduler-config';
import type { ClipTextEncoder } from '../text-encoder/clip-text-encoder';
import type { Unet } from '../unet/unet';
import type { VaeDecoder } from '../vae/vae-decoder';

type Float = 'float32' | 'float16';

/** What a model is, from its own files; nothing here is known in advance. */
export interface ModelFacts {
  latentChannels: number;
  /** Pixels of the picture's edge for one of the latents' edge. */
  vaeScaleFactor: number;
  predictionType: PredictionType;
  /** The model's own scheduler: the name that a request would choose it by, diffusers' class name where none fits. */
  scheduler: string;
  /** Edge in pixels of the square pictures that the model was trained on. */
  nativeSize: number;
  /** Width of an embedding. */
  hiddenWidth: number;
  /** Tokens of one encoded row, begin and end included; longer prompts take several rows. */
  maxTokens: number;
  /** Pixels of a picture, where a graph was exported for one size only. */
  fixedSize: { width?: number; height?: number };
  /** Rows of tokens that a prompt may take, where the U-Net was exported for one number only. */
  fixedChunks: number | undefined;
  /** What the memory of a call depends on. */
  widths: ModelWidths;
  /** Element type of each part's output. */
  dtypes: { textEncoder: Float; unet: Float; vaeDecoder: Float };
}

/** The parts of a model, loaded. */
export interface LoadedParts {
  textEncoder: ClipTextEncoder;
  unet: Unet;
  vaeDecoder: VaeDecoder;
}

/** diffusers' own default for `OnnxStableDiffusionPipeline`, whose folders need not say. */
const defaultNativeSize = 512;
/**
 * For folders that do not say: the default of diffusers' `AutoencoderKL`, which every Stable Diffusion 1.x and 2.x has.
 * Source: the reciprocal of the deviation of its VAE's latents (Rombach et al., "High-Resolution Image Synthesis with
 * Latent Diffusion Models").
 */
const defaultScalingFactor = 0.18215;

/** How the VAE's latents are scaled; diffusers leaves null what does not apply. */
export function vaeScaling({ scaling_factor: factor, shift_factor: shift }: JsonObject) {
  return {
    factor: typeof factor === 'number' ? factor : defaultScalingFactor,
    shift: typeof shift === 'number' ? shift : 0,
  };
}

/**
 * Compares the parts with one another.
 * @returns what all of them agree on: channels of the latents, and the width of an embedding
 * @throws ModelFolderError if two parts do not fit
 */
export function agreedWidths(folder: ModelFolder, { textEncoder, unet }: LoadedParts) {
  const channels = latentChannels(folder, unet.values.facts);
  if (!channels)
    throw new ModelFolderError(folder.unet.path, 'does not tell its number of latent channels', cures.exportAgain);
  // Where the files do not say it, ONNX Runtime may have inferred it.
  const hiddenWidth = folder.embeddingWidth ?? textEncoder.values.hiddenWidth;
  if (!hiddenWidth)
    throw new ModelFolderError(folder.unet.path, 'does not tell the width of its embeddings', cures.exportAgain);
  checkTokenizer(folder, textEncoder.values.sequenceLength);
  checkPreview(folder, channels);
  return { latentChannels: channels, hiddenWidth };
}

/** @param vaeScaleFactor as measured by decoding */
export function factsOf(
  folder: ModelFolder,
  { textEncoder, unet, vaeDecoder }: LoadedParts,
  vaeScaleFactor: number,
): ModelFacts {
  const { configs, schedulerJson, tokenizer } = folder;
  const { tokens, height } = unet.values.facts;
  const fixed = fixedSizeOf(folder);
  const sampleSize = height ?? positive(configs.unet.sample_size);
  return {
    ...agreedWidths(folder, { textEncoder, unet, vaeDecoder }),
    vaeScaleFactor,
    predictionType: readSchedulerConfig(schedulerJson, {}).predictionType,
    scheduler: schedulerNameOf(schedulerJson) ?? String(schedulerJson._class_name),
    nativeSize: sampleSize ? sampleSize * vaeScaleFactor : defaultNativeSize,
    maxTokens: tokenizer.maxLength,
    fixedSize: {
      ...(fixed.width !== undefined && { width: fixed.width * vaeScaleFactor }),
      ...(fixed.height !== undefined && { height: fixed.height * vaeScaleFactor }),
    },
    fixedChunks: tokens && Math.max(1, Math.floor(tokens / tokenizer.maxLength)),
    widths: { ...modelWidths(configs), scale: vaeScaleFactor },
    dtypes: { textEncoder: textEncoder.values.dtype, unet: unet.values.dtype, vaeDecoder: vaeDecoder.values.dtype },
  };
}

/** What the memory of a call depends on, beside the size of the picture. */
export interface ModelWidths {
  /** Pixels of the picture's edge for one of the latents' edge. */
  scale: number;
  /** Channels of the U-Net's largest level. */
  channels: number;
  /** Heads of the U-Net's largest level that has attention, and how many times the latents' edge is halved there. */
  attention: { heads: number; level: number };
  /** Most channels that the VAE decoder has at the size of the picture. */
  decoderChannels: number;
  /**
   * Of the text encoder: width of a token, inside a layer and between two, heads of its attention, and tokens of a row.
   */
  textEncoder: { hidden: number; inner: number; heads: number; tokens: number };
}

/**
 * Read from the configurations, so that it is known before a model is loaded; those of Stable Diffusion 1.x
 * where they do not say.
 */
export function modelWidths({ textEncoder, unet, vaeDecoder }: ModelFolder['configs']): ModelWidths {
  const levels = numbers(unet.block_out_channels) ?? [320, 640, 1280, 1280];
  const decoderLevels = numbers(vaeDecoder.block_out_channels) ?? [128, 256, 512, 512];
  return {
    scale: 2 ** (decoderLevels.length - 1),
    channels: levels[0],
    attention: attentionOf(unet),
    // The level below is enlarged before its channels become fewer.
    decoderChannels: Math.max(...decoderLevels.slice(0, 2)),
    textEncoder: textEncoderOf(textEncoder),
  };
}

function textEncoderOf(config: JsonObject): ModelWidths['textEncoder'] {
  const positive = (value: unknown, otherwise: number): number => numbers([value])?.[0] ?? otherwise;
  const hidden = positive(config.hidden_size, 768);
  return {
    hidden,
    inner: positive(config.intermediate_size, 4 * hidden),
    heads: positive(config.num_attention_heads, 12),
    tokens: positive(config.max_position_embeddings, 77),
  };
}

/** In diffusers `attention_head_dim` is the number of heads where `num_attention_heads` is not given. */
function attentionOf(unet: JsonObject): ModelWidths['attention'] {
  const types: unknown[] = Array.isArray(unet.down_block_types) ? unet.down_block_types : [];
  const level = Math.max(
    0,
    types.findIndex((type) => typeof type === 'string' && type.includes('Attn')),
  );
  const heads = unet.num_attention_heads ?? unet.attention_head_dim;
  return { heads: numbers([heads].flat())?.at(Math.min(level, [heads].flat().length - 1)) ?? 8, level };
}

function numbers(value: unknown): number[] | undefined {
  const isPositive = (each: unknown): each is number => typeof each === 'number' && Number.isFinite(each) && each > 0;
  return Array.isArray(value) && value.length > 0 && value.every(isPositive) ? value : undefined;
}
