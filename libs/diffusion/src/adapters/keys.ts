import { quote } from '../safetensors/quote';
import { malformed, unsupported } from './weights-error';

/** One tensor of a layer's change, by the name that most tools have for it. */
export type Factor =
  | 'down'
  | 'up'
  | 'mid'
  | `hada_${'w1_a' | 'w1_b' | 'w2_a' | 'w2_b' | 't1' | 't2'}`
  | `lokr_${'w1' | 'w1_a' | 'w1_b' | 'w2' | 'w2_a' | 'w2_b' | 't2'}`
  | 'dora_scale'
  | 'lora_magnitude_vector'
  | 'diff'
  | 'diff_b'
  | 'alpha';

/** `x.lora_down.weight`, `x.lora_A.default.weight`, `x.lora.down.weight`, `x.to_q_lora.down.weight`, `x.down`. */
const lowRank =
  /^(.+?)(?:[._]lora(?:_linear_layer)?[._](A|B|down|up|mid)(?:\.(?!bias$)\w+)??|\.(down|up))(?:\.weight)?$/;
const others =
  /^(.+?)\.(hada_(?:w[12]_[ab]|t[12])|lokr_(?:w[12](?:_[ab])?|t2)|dora_scale|lora_magnitude_vector|diff|diff_b|w_norm|b_norm)(?:\.\w+)??(?:\.weight)?$/;
const alpha = /^(.+?)(?:[._]lora(?:_linear_layer)?)?\.alpha$/;
const synonyms: Readonly<Record<string, Factor>> = { A: 'down', B: 'up', w_norm: 'diff', b_norm: 'diff_b' };

/** Takes a key apart into its layer's name, as the file writes it, and the factor; undefined if it is none of them. */
export function parseKey(key: string): { layer: string; factor: Factor } | undefined {
  const [, layer, first, second] = lowRank.exec(key) ?? others.exec(key) ?? [];
  const name = first ?? second;
  if (layer !== undefined) return { layer, factor: synonyms[name] ?? (name as Factor) };
  const [, scaled] = alpha.exec(key) ?? [];
  // Older diffusers append it to the whole name of a factor.
  return scaled === undefined ? undefined : { layer: lowRank.exec(scaled)?.[1] ?? scaled, factor: 'alpha' };
}

type Kinds = readonly (readonly [RegExp, string])[];

/** Suffixes of what changes a weight in a way that is not known here. */
const relatives: Kinds = [
  [/\.on_input$|[._]ia3_l(?:\.|$)/, 'an IA3'],
  [/\.(?:b?oft_\w+|oft_blocks)(?:\.|$)/, 'an OFT'],
  [/\.(?:[ab][12]|bm)\.weight$/, 'a GLoRA'],
  [/\.(?:lambda_layer|[pq]_layer\.weight)$/, 'a T-LoRA'],
  [/\.vera_(?:lambda|A|B)/, 'a VeRA'],
  [/\.set_weight$/, "a weight in place of the model's own"],
  [/\.lora_embedding_[AB]/, 'a LoRA of an embedding'],
  [/\.lora_(?:A|B|up|down)(?:\.\w+)?\.bias$/, 'a LoRA with biases'],
];

/** Kinds of files that may have keys of a LoRA beside their own. */
const mixedFiles: Kinds = [
  [
    /^(?:control_model|controlnet|lllite_\w+)\.|^lora_controlnet$|(?:^|\.)(?:controlnet_\w+|input_hint_block|zero_convs)\./,
    'a ControlNet',
  ],
  [/^(?:image_proj|ip_adapter)\./, 'an IP-Adapter'],
  [/^(?:adapter\.)?body\.\d/, 'a T2I-Adapter'],
];
const otherFiles: Kinds = [
  [/motion_modules\./, 'a motion module'],
  [/^(?:model\.diffusion_model|first_stage_model|cond_stage_model|conditioner)\./, 'a checkpoint, a whole model'],
  [/^(?:unet\.)?(?:(?:down|up)_blocks|mid_block|conv_in|conv_out)\./, 'a U-Net'],
  [/^(?:diffusion_model\.)?(?:(?:in|out)put_blocks|middle_block)\./, 'a U-Net'],
  [/^(?:vae\.)?(?:encoder|decoder)\.(?:conv_in|conv_out|down|up|mid)/, 'an autoencoder'],
  [/^(?:text_encoder\.)?(?:text_model|embeddings|encoder\.layers)\./, 'a text encoder'],
];

const otherKindOf = (key: string, kinds: Kinds): string | undefined =>
  kinds.find(([pattern]) => pattern.test(key))?.[1];

/** Whether a key is one of an adapter, be it of a kind that is not known. */
export const isAdapterKey = (key: string): boolean => (parseKey(key) ?? otherKindOf(key, relatives)) !== undefined;

/** @throws WeightsError with what the file is, if it is no adapter of a known kind */
export function refuseOtherFiles(keys: readonly string[]): void {
  const unknown = keys.filter((key) => !parseKey(key));
  const checks: readonly (readonly [readonly string[], Kinds, string])[] = [
    [keys, mixedFiles, 'file'],
    [unknown, relatives, 'adapter'],
    [unknown, otherFiles, 'file'],
  ];
  for (const [among, kinds, what] of checks) {
    const key = among.find((one) => otherKindOf(one, kinds));
    if (key !== undefined)
      throw unsupported(
        `The ${what} is ${otherKindOf(key, kinds)}, as its key ${quote(key)} says; accepted are LoRA, LoCon, LoHa, LoKr, DoRA, full differences and textual inversion.`,
      );
  }
  if (unknown.length > 0) throw malformed(`The key ${quote(unknown[0])} is none that a LoRA has.`);
}
