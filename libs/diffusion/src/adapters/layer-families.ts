const prefixes = [
  'base_model',
  'model',
  'module',
  'lora',
  'lycoris',
  'unet',
  'diffusion_model',
  'transformer(?!_blocks)',
];

/** `base_model.model.` stands before others. */
const prefix = new RegExp(`^(?:(?:${prefixes.join('|')})_){1,5}`);

/** A canonical name without what tools write before the path of a denoiser's layer. */
export const withoutPrefix = (name: string): string => name.replace(prefix, '');

/**
 * Paths of layers that one family has and those after it have not. FLUX.2 has at most 8 blocks of two sides, FLUX.1 19,
 * Stable Diffusion 3 at most 38 and Qwen-Image 60.
 */
const families: readonly (readonly [RegExp, string])[] = [
  [/^double_blocks_\d+_(?:img|txt)_(?:mlp_fc\d|mod_linear)/, 'HunyuanVideo'],
  [/^(?:double|single)_blocks_\d+_(?:(?:(?:img|txt)_mod|modulation)_lin$|qkv_lora|proj_lora)/, 'FLUX.1'],
  [/^double_blocks_(?:[89]|\d\d)_/, 'FLUX.1'],
  [/^single_transformer_blocks_\d+_(?:attn_to_[qkv]$|proj_|norm_linear)/, 'FLUX.1'],
  [/^transformer_blocks_(?:\d+_(?:img|txt)_(?:mlp|mod)|(?:3[89]|[45]\d)_attn)_/, 'Qwen-Image'],
  [/^(?:joint_blocks_\d|transformer_blocks_(?:19|2\d|3[0-7])_(?:attn|ff|norm1))/, 'Stable Diffusion 3'],
  [
    /^transformer_blocks_(?:(?:[89]|1[0-8])_(?:attn|ff)|\d+_(?:norm1|ff(?:_context)?_net))_/,
    'FLUX.1 or Stable Diffusion 3',
  ],
  [/^blocks_\d+_(?:(?:self|cross)_attn|attn[12]|ffn)_/, 'Wan'],
  [
    /^(?:down_blocks|up_blocks|mid_block|(?:in|out)put_blocks|middle_block)_.*transformer_blocks_[1-9]/,
    'Stable Diffusion XL',
  ],
  [/^(?:down_blocks|up_blocks|mid_block|(?:in|out)put_blocks|middle_block)_/, 'Stable Diffusion'],
  [/^(?:layers|noise_refiner|context_refiner)_\d+_(?:attention_|feed_forward|adaLN_mod)/, 'Z-Image'],
  [/^layers_\d+_(?:self_attention_|mlp_linear_fc2|adaLN_(?:sa|mlp)_)/, 'ERNIE-Image'],
  [/^(?:(?:double|single)_blocks|(?:single_)?transformer_blocks|sformer_blocks)_\d/, 'FLUX.2'],
];

/** A family of models that some canonical names tell, and the name that tells it. */
export function familyOf(names: Iterable<string>): { family: string; name: string } | undefined {
  const paths = [...names].map((name) => ({ name, path: withoutPrefix(name) }));
  for (const [pattern, family] of families) {
    const telling = paths.find(({ path }) => pattern.test(path));
    if (telling) return { family, name: telling.name };
  }
  return undefined;
}
