import { cures } from '../model/cures';
import { ModelFolderError } from '../model/errors';
import type { JsonObject } from '../model/json-file';
import type { ModelFolder } from '../model/model-folder';
import { checkTokenizer, latentChannels, positive } from '../model/parts-fit';
import { schedulerNameOf } from '../schedulers';
import { readSchedulerConfig } from '../schedulers/scheduler-config';
import type { PredictionType } from '../schedulers/scheduler-config';
import type { ClipTextEncoder } from '../text-encoder/clip-text-encoder';
import type { Unet } from '../unet/unet';
import { modelWidths } from './model-widths';
import type { ModelWidths } from './model-widths';

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
 * Compares the parts with one another and settles what all of them agree on.
 * @param vaeScaleFactor as measured by decoding
 * @throws ModelFolderError if two parts do not fit
 */
export function settleFacts(
  folder: ModelFolder,
  { textEncoder, unet }: { textEncoder: ClipTextEncoder; unet: Unet },
): Omit<ModelFacts, 'vaeScaleFactor' | 'nativeSize' | 'dtypes' | 'fixedSize'> & { sampleSize: number | undefined } {
  const { configs, tokenizer } = folder;
  const channels = latentChannels(folder, unet.values.facts);
  if (!channels)
    throw new ModelFolderError(folder.unet.path, 'does not tell its number of latent channels', cures.exportAgain);
  // Where the files do not say it, ONNX Runtime may have inferred it.
  const hiddenWidth = folder.embeddingWidth ?? textEncoder.values.hiddenWidth;
  if (!hiddenWidth)
    throw new ModelFolderError(folder.unet.path, 'does not tell the width of its embeddings', cures.exportAgain);
  checkTokenizer(folder, textEncoder.values.sequenceLength);
  return {
    latentChannels: channels,
    predictionType: readSchedulerConfig(folder.schedulerJson, {}).predictionType,
    scheduler: schedulerNameOf(folder.schedulerJson) ?? String(folder.schedulerJson._class_name),
    hiddenWidth,
    widths: modelWidths(configs),
    maxTokens: tokenizer.maxLength,
    fixedChunks: unet.values.facts.tokens && Math.max(1, Math.floor(unet.values.facts.tokens / tokenizer.maxLength)),
    sampleSize: unet.values.facts.height ?? positive(configs.unet.sample_size),
  };
}

/** Edge of the pictures that a U-Net was trained on, from the edge of its latents where the model tells it. */
export function nativeSize(sampleSize: number | undefined, vaeScaleFactor: number): number {
  return sampleSize ? sampleSize * vaeScaleFactor : defaultNativeSize;
}
