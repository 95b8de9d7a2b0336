import { type Cure, cures } from '../errors';
import type { NamedTensors } from '../weights/named-tensor';

/** Files that are no checkpoint to draw with, by what one of their tensors is called; the first that fits tells. */
const others: readonly [name: RegExp, is: string, cure: Cure][] = [
  [
    /\.(absmax|quant_map|qweight|qzeros|quant_state\..+|scale_(weight|input)|weight_scale)$|^scaled_fp8$/,
    'is quantised, so that its numbers cannot be read as they are',
    cures.plainWeights,
  ],
  [
    /^lora_|\.lora_|\.lora\.(up|down)|_lora\.(up|down)|\.(hada|lokr|oft|boft)_|\.(dora_scale|on_input|diff|diff_b)$/,
    'is a LoRA, which changes a model and is none',
    cures.toFinetune,
  ],
  [
    /^(emb_params|clip_[lg]|string_to_param\..+)$/,
    'is a textual inversion, which teaches a model a word',
    cures.toFinetune,
  ],
  [
    /^(control_model\.|controlnet_|zero_convs\.|input_hint_block\.)/,
    'is a ControlNet, which guides a model and draws nothing by itself',
    cures.asControl,
  ],
  [/^(image_proj|ip_adapter)\./, 'is an IP-Adapter, which shows a model pictures', cures.otherModel],
  [/^(adapter\.)?body\.\d+\.(block|resnets|in_conv)/, 'is a T2I-Adapter, which guides a model', cures.otherModel],
  [/motion_modules|time_stack|temporal_transformer/, 'is a model of films', cures.otherModel],
  [/^conditioner\.embedders\.0\.model\./, 'is the refiner of Stable Diffusion XL', cures.otherModel],
  [/^(model\.diffusion_model\.)?(double_blocks|single_transformer_blocks)\./, 'is Flux', cures.otherModel],
  [/^(model\.diffusion_model\.)?joint_blocks\./, 'is Stable Diffusion 3', cures.otherModel],
  [/clip_txt_(pooled_)?mapper|effnet_mapper/, 'is Stable Cascade', cures.otherModel],
  [
    /^(model\.diffusion_model\.)?((transformer_|double_)?(blocks|layers)\.\d+\.|(x|img|pos)_embed)/,
    'is a diffusion transformer in one file; only folders of diffusers are taken',
    cures.otherModel,
  ],
  [/^(conv_first|body\.0\.rdb1|model\.1\.sub)\./, 'is a model that enlarges pictures', cures.otherModel],
  [
    /^((text|vision)_model|transformer\.resblocks|encoder\.block\.0\.layer)\./,
    'is a text encoder alone',
    cures.wholeModel,
  ],
];

/** Kind of a file whose tensors no model's checkpoint has, and what to do with it; undefined if they tell nothing. */
export function otherWeights(tensors: NamedTensors): { is: string; cure: Cure } | undefined {
  const [[name, { shape }]] = tensors.size === 1 ? tensors : [['', { shape: [] as readonly number[] }]];
  // diffusers calls the only tensor of a textual inversion by its word.
  const isWord = name !== '' && shape.length <= 2 && !name.endsWith('.weight');
  const names = isWord ? ['emb_params'] : [...tensors.keys()];
  const found = others.find(([pattern]) => names.some((each) => pattern.test(each)));
  return found && { is: found[1], cure: found[2] };
}
