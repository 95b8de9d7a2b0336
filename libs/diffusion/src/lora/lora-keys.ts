import { malformed, misfit, quote, WeightsError } from '../finetune/weights-error';

export type ModelPart = 'unet' | 'text_encoder';
export type LoraFormat = 'diffusers' | 'kohya';

/** The meaning of one key of a LoRA file. */
interface LoraKey {
  part: ModelPart;
  /** The layer's path as {@link canonicalPath} writes it. */
  path: string;
  role: 'down' | 'up' | 'mid' | 'alpha';
  format: LoraFormat;
}

/**
 * Normalises a layer's path: dots and slashes become `_` (as in kohya's files, where the two are indistinguishable),
 * and prefixes that some tools add are removed.
 */
export function canonicalPath(path: string): string {
  return path.replace(/[./]/g, '_').replace(/^_?(?:(?:unet|text_encoder|text_model|model|m)_)*/, '');
}

/** Suffixes of LoRA variants that change a weight by something other than up x down. */
const relatives: [RegExp, string][] = [
  [/\.hada_/, 'a LoHa'],
  [/\.lokr_/, 'a LoKr'],
  [/\.(oft|boft)_|\.oft_blocks/, 'an OFT'],
  [/\.on_input$/, 'an IA3'],
  [/\.[ab][12]\.weight$/, 'a GLoRA'],
  [/\.(dora_scale|lora_magnitude_vector(\.\w+)?(\.weight)?)$/, 'a DoRA'],
  [/\.(diff|diff_b|set_weight)$/, 'a full weight difference'],
  [/\.lora_embedding_[AB]/, 'a LoRA of an embedding'],
  [/\.lora_(A|B|up|down)(\.\w+)?\.bias$/, 'a LoRA with biases'],
];

const factor = /^(.+?)(?:\.lora_linear_layer\.|\.lora\.|\.lora_|_lora\.)(A|B|down|up|mid)(?:\.[A-Za-z]\w*)?\.weight$/;
const scaling = /^(.+?)(?:\.lora_linear_layer|\.lora|_lora)?\.alpha$/;
const roles = { A: 'down', B: 'up', down: 'down', up: 'up', mid: 'mid' } as const;

/**
 * Parses a key as written by peft, diffusers (now and before peft) or kohya's scripts.
 * @throws WeightsError if it is of another kind of weights, of another model family, or of no known form.
 */
export function parseLoraKey(key: string): LoraKey {
  for (const [ending, kind] of relatives)
    if (ending.test(key))
      throw new WeightsError(
        'WeightsKindUnsupported',
        `The key ${quote(key)} is ${kind}; only plain LoRA is accepted.`,
      );
  const [, name, letter] = factor.exec(key) ?? scaling.exec(key) ?? [];
  if (name === undefined) throw malformed(`The key ${quote(key)} is none that a LoRA has.`);
  const role = letter === undefined ? 'alpha' : roles[letter as keyof typeof roles];
  return { ...parseLayer(name, key), role };
}

function parseLayer(name: string, key: string): Omit<LoraKey, 'role'> {
  const bare = name.replace(/^base_model\.model\./, '');
  // OneTrainer writes kohya's prefixes with dots, too.
  const kohya = /^lora_(unet|te1?)[_.](.+)$/.exec(bare);
  if (kohya) {
    const part = kohya[1] === 'unet' ? 'unet' : 'text_encoder';
    const path = canonicalPath(kohya[2]);
    return { part, path: part === 'unet' ? diffusersPath(path) : path, format: 'kohya' };
  }
  if (/^lora_te[2-9]|^text_encoder_[2-9]/.test(bare))
    throw misfit(`The key ${quote(key)} is for a model with several text encoders.`);
  if (/^(lora_)?(transformer|prior)[._]/.test(bare))
    throw misfit(`The key ${quote(key)} is for another family of models.`);
  if (/^(model\.)?diffusion_model\./.test(bare)) {
    const path = canonicalPath(bare.replace(/^(model\.)?diffusion_model\./, ''));
    return { part: 'unet', path: diffusersPath(path), format: 'kohya' };
  }
  if (/^(unet\.|(down|up)_blocks\.|mid_block\.)/.test(bare)) {
    const path = bare.replace('.processor.', '.').replace(/\.to_out$/, '.to_out.0');
    return { part: 'unet', path: canonicalPath(path), format: 'diffusers' };
  }
  if (/^(text_encoder|text_model)\./.test(bare)) {
    const path = bare.replace(/\.to_([qkv]|out)$/, '.$1_proj');
    return { part: 'text_encoder', path: canonicalPath(path), format: 'diffusers' };
  }
  throw malformed(`The key ${quote(key)} belongs to no part of the model.`);
}

/** Residual layers of a level, of every Stable Diffusion 1.x and 2.x. */
const layersPerLevel = 2;

const resnetNames: Readonly<Record<string, string>> = {
  in_layers_2: 'conv1',
  out_layers_3: 'conv2',
  emb_layers_1: 'time_emb_proj',
  skip_connection: 'conv_shortcut',
};

/**
 * The path of a U-Net's layer as diffusers names it, from the name in CompVis' latent-diffusion, which numbers blocks
 * through; both with `_` for dots. A path that is none of those is returned as it is.
 * Source: `convert_ldm_unet_checkpoint` of diffusers; the constructor of latent-diffusion's UNetModel.
 */
export function diffusersPath(path: string): string {
  const middle = /^middle_block_([012])_(.+)$/.exec(path);
  if (middle) {
    const [, at, inner] = middle;
    return at === '1' ? `mid_block_attentions_0_${inner}` : `mid_block_resnets_${Number(at) / 2}_${resnetName(inner)}`;
  }
  const [, side, number, place, inner = ''] = /^(input|output)_blocks_(\d+)_(\d)(?:_(.+))?$/.exec(path) ?? [];
  if (side === undefined) return outerNames[path] ?? path;
  // The first input block is the first convolution; every level of the encoder ends with a block that halves.
  const block = Number(number) - (side === 'input' ? 1 : 0);
  if (block < 0) return 'conv_in';
  const level = Math.floor(block / (layersPerLevel + 1));
  const name = `${side === 'input' ? 'down' : 'up'}_blocks_${level}`;
  if (inner === 'op') return `${name}_downsamplers_0_conv`;
  if (inner === 'conv') return `${name}_upsamplers_0_conv`;
  return inBlock(name, block % (layersPerLevel + 1), Number(place), inner);
}

function inBlock(name: string, layer: number, index: number, inner: string): string {
  return index === 0 ? `${name}_resnets_${layer}_${resnetName(inner)}` : `${name}_attentions_${layer}_${inner}`;
}

function resnetName(inner: string): string {
  return resnetNames[inner] ?? inner;
}

const outerNames: Readonly<Record<string, string>> = {
  time_embed_0: 'time_embedding_linear_1',
  time_embed_2: 'time_embedding_linear_2',
  out_2: 'conv_out',
};
