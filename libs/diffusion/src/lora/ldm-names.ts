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
