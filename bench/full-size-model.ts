import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { countOf, safetensorsHeader } from '@app/diffusion';
import { encodeBfloat16 } from '../libs/diffusion/src/tensor/half';
import { randomFrom } from './section';

/** Widths of Stable Diffusion 1.5: of the U-Net's levels, of the decoder's, and of a text. */
const [levels, decoderLevels, context] = [
  [320, 640, 1280, 1280],
  [512, 512, 256, 128],
  { width: 768, inner: 3072, layers: 12, positions: 77, words: 776 },
];
const timeWidth = 4 * levels[0];
const latentChannels = 4;
/** Only what differs from the defaults of diffusers' and transformers' classes. */
export const vaeConfig = {
  ...{ sample_size: 512, layers_per_block: 2 },
  block_out_channels: decoderLevels.toReversed(),
  down_block_types: decoderLevels.map(() => 'DownEncoderBlock2D'),
  up_block_types: decoderLevels.map(() => 'UpDecoderBlock2D'),
};
const configs = {
  unet: { _class_name: 'UNet2DConditionModel', sample_size: 64, cross_attention_dim: context.width },
  vae: { ...vaeConfig, _class_name: 'AutoencoderKL', scaling_factor: 0.18215 },
  text_encoder: {
    ...{ model_type: 'clip_text_model', hidden_act: 'quick_gelu', vocab_size: context.words },
    ...{ hidden_size: context.width, intermediate_size: context.inner, projection_dim: context.width },
    ...{ num_hidden_layers: context.layers, num_attention_heads: context.width / 64 },
    ...{ bos_token_id: context.words - 2, eos_token_id: context.words - 1, pad_token_id: context.words - 1 },
  },
};
/** Random values, reused; no multiple of a width, so that the rows of a weight differ. */
export const keptValues = (1 << 20) - 3;
/** Each tensor begins elsewhere in them, or queries and keys would be the same. */
export const step = 10_007;

/** Bell-shaped, as trained weights are: how far int8 errs depends on it (Box and Muller). */
export function normalValues(): Float32Array<ArrayBuffer> {
  const random = randomFrom(1);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Float32Array.from({ length: keptValues }, normal);
}

/** Of a part's tensors, by their names. */
export class Shapes {
  readonly all = new Map<string, number[]>();

  matrix(path: string, ...shape: number[]): void {
    this.all.set(`${path}.weight`, shape);
  }

  /** With a bias. */
  layer(path: string, ...shape: number[]): void {
    this.matrix(path, ...shape);
    this.all.set(`${path}.bias`, [shape[0]]);
  }

  resnet(path: string, from: number, to: number, time?: number): void {
    this.layer(`${path}.norm1`, from);
    this.layer(`${path}.conv1`, to, from, 3, 3);
    if (time) this.layer(`${path}.time_emb_proj`, to, time);
    this.layer(`${path}.norm2`, to);
    this.layer(`${path}.conv2`, to, to, 3, 3);
    if (from !== to) this.layer(`${path}.conv_shortcut`, to, from, 1, 1);
  }

  transformer(path: string, width: number): void {
    this.layer(`${path}.norm`, width);
    for (const name of ['proj_in', 'proj_out']) this.layer(`${path}.${name}`, width, width, 1, 1);
    const block = `${path}.transformer_blocks.0`;
    for (const i of [1, 2, 3]) this.layer(`${block}.norm${i}`, width);
    for (const [name, from] of Object.entries({ attn1: width, attn2: context.width })) {
      this.matrix(`${block}.${name}.to_q`, width, width);
      for (const side of ['to_k', 'to_v']) this.matrix(`${block}.${name}.${side}`, width, from);
      this.layer(`${block}.${name}.to_out.0`, width, width);
    }
    this.layer(`${block}.ff.net.0.proj`, 8 * width, width);
    this.layer(`${block}.ff.net.2`, width, 4 * width);
  }
}

function unet(): Shapes {
  const shapes = new Shapes();
  const [first] = levels;
  const last = levels.length - 1;
  shapes.layer('conv_in', first, latentChannels, 3, 3);
  shapes.layer('time_embedding.linear_1', timeWidth, first);
  shapes.layer('time_embedding.linear_2', timeWidth, timeWidth);
  let width = first;
  const skips = [first];
  for (const [i, level] of levels.entries()) {
    for (const j of [0, 1]) {
      shapes.resnet(`down_blocks.${i}.resnets.${j}`, width, level, timeWidth);
      if (i < last) shapes.transformer(`down_blocks.${i}.attentions.${j}`, level);
      skips.push((width = level));
    }
    if (i < last) shapes.layer(`down_blocks.${i}.downsamplers.0.conv`, width, width, 3, 3);
    if (i < last) skips.push(width);
  }
  for (const i of [0, 1]) shapes.resnet(`mid_block.resnets.${i}`, width, width, timeWidth);
  shapes.transformer('mid_block.attentions.0', width);
  for (const [i, level] of levels.toReversed().entries()) {
    for (const j of [0, 1, 2]) {
      shapes.resnet(`up_blocks.${i}.resnets.${j}`, width + skips.pop()!, level, timeWidth);
      if (i > 0) shapes.transformer(`up_blocks.${i}.attentions.${j}`, level);
      width = level;
    }
    if (i < last) shapes.layer(`up_blocks.${i}.upsamplers.0.conv`, width, width, 3, 3);
  }
  shapes.layer('conv_norm_out', first);
  shapes.layer('conv_out', latentChannels, first, 3, 3);
  return shapes;
}

/** Of an AutoencoderKL with so many channels. */
export function vae(latents: number): Shapes {
  const shapes = new Shapes();
  const channels = 2 * latents;
  shapes.layer('quant_conv', channels, channels, 1, 1);
  shapes.layer('post_quant_conv', latents, latents, 1, 1);
  vaeSide(shapes, 'encoder', decoderLevels.toReversed(), [3, channels]);
  vaeSide(shapes, 'decoder', decoderLevels, [latents, 3]);
  return shapes;
}

function vaeSide(shapes: Shapes, side: 'encoder' | 'decoder', widths: number[], [from, to]: number[]): void {
  const [blocks, resnets, scaled] =
    side === 'encoder' ? ['down_blocks', [0, 1], 'downsamplers'] : (['up_blocks', [0, 1, 2], 'upsamplers'] as const);
  let [width] = widths;
  shapes.layer(`${side}.conv_in`, width, from, 3, 3);
  for (const [i, level] of widths.entries()) {
    for (const j of resnets) {
      shapes.resnet(`${side}.${blocks}.${i}.resnets.${j}`, width, level);
      width = level;
    }
    if (i < widths.length - 1) shapes.layer(`${side}.${blocks}.${i}.${scaled}.0.conv`, width, width, 3, 3);
  }
  shapes.layer(`${side}.conv_norm_out`, width);
  shapes.layer(`${side}.conv_out`, to, width, 3, 3);
  const [middle] = decoderLevels;
  for (const i of [0, 1]) shapes.resnet(`${side}.mid_block.resnets.${i}`, middle, middle);
  const attention = `${side}.mid_block.attentions.0`;
  shapes.layer(`${attention}.group_norm`, middle);
  for (const name of ['to_q', 'to_k', 'to_v', 'to_out.0']) shapes.layer(`${attention}.${name}`, middle, middle);
}

function textEncoder(): Shapes {
  const shapes = new Shapes();
  const { width, inner, layers, positions, words } = context;
  shapes.matrix('text_model.embeddings.token_embedding', words, width);
  shapes.matrix('text_model.embeddings.position_embedding', positions, width);
  for (let i = 0; i < layers; i++) {
    const path = `text_model.encoder.layers.${i}`;
    for (const name of ['q_proj', 'k_proj', 'v_proj', 'out_proj'])
      shapes.layer(`${path}.self_attn.${name}`, width, width);
    for (const name of ['layer_norm1', 'layer_norm2']) shapes.layer(`${path}.${name}`, width);
    shapes.layer(`${path}.mlp.fc1`, inner, width);
    shapes.layer(`${path}.mlp.fc2`, width, inner);
  }
  shapes.layer('text_model.final_layer_norm', width);
  return shapes;
}

/**
 * Makes a model folder of Stable Diffusion 1.5 at full size with random weights, 4.1 GB, and the tokenizer of another
 * model. Its pictures show nothing, but take the time and the memory of real ones.
 */
export async function makeFullSizeModel(folder: string, other: string): Promise<void> {
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  for (const name of ['tokenizer', 'scheduler', 'model_index.json'])
    cpSync(join(other, name), join(unfinished, name), { recursive: true });
  const files = { unet: 'diffusion_pytorch_model', vae: 'diffusion_pytorch_model', text_encoder: 'model' };
  const shapes = { unet: unet(), vae: vae(latentChannels), text_encoder: textEncoder() };
  for (const part of ['unet', 'vae', 'text_encoder'] as const) {
    mkdirSync(join(unfinished, part));
    writeFileSync(join(unfinished, part, 'config.json'), JSON.stringify(configs[part]));
    await writePart(join(unfinished, part, `${files[part]}.safetensors`), shapes[part]);
  }
  renameSync(unfinished, folder);
}

/** Writes random weights. Values are drawn once and repeated, as drawing takes much longer than writing. */
export async function writePart(path: string, { all }: Shapes, dtype: 'F32' | 'BF16' = 'F32'): Promise<void> {
  const drawn = normalValues();
  const file = await open(path, 'wx');
  try {
    const shapes = new Map([...all].map(([name, shape]) => [name, { shape, dtype }]));
    await file.writeFile(safetensorsHeader(shapes, { format: 'pt' }));
    for (const [i, [name, shape]] of [...all].entries()) {
      const from = i * step;
      const values = scaled(name, shape, (at) => drawn[(from + at) % keptValues]);
      const { buffer } = dtype === 'F32' ? values : encodeBfloat16(values);
      const bytes = new Uint8Array(buffer);
      const length = (countOf(shape) * bytes.length) / values.length;
      for (let at = 0; at < length; at += bytes.length) await file.writeFile(bytes.subarray(0, length - at));
    }
  } finally {
    await file.close();
  }
}

/** Activations keep their size: norms change nothing, and a layer's output is about as large as its input. */
function scaled(name: string, [length, ...rest]: readonly number[], random: (at: number) => number): Float32Array {
  if (rest.length === 0) return new Float32Array(length).fill(/norm.*\.weight$|running_var$/.test(name) ? 1 : 0);
  const scale = Math.sqrt(1 / countOf(rest));
  return Float32Array.from({ length: keptValues }, (_, at) => scale * random(at));
}
