import type { JsonObject } from '../model/json-file';
import type { ModelFolder } from '../model/model-folder';

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
