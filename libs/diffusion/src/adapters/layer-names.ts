import { quote } from '../safetensors/quote';
import { adaptedParts, canonicalName } from './adapter';
import { diffusersUnetPath, type PartName, type PartTensors } from '../weights/original-names';
import { malformed, misfit, type WeightsError } from './weights-error';

/** A layer of a model. */
export interface Place {
  part: PartName;
  /** `down_blocks.0.attentions.0.proj_in` */
  path: string;
}

/**
 * Prefixes, and the part that each says a layer belongs to. Tools write others too, such as `lycoris_` or
 * `base_model_model_`, which say nothing and do no harm.
 */
const prefixes: readonly [RegExp, PartName | undefined][] = [
  [/control|first_stage|vae|prior|refiner|image_encoder/, undefined],
  [/unet|diffusion_model/, 'unet'],
  [/(?:^|_)(?:te_?2|text_encoders?_2|clip_g|embedders_1)(?:_|$)/, 'text_encoder_2'],
  [/(?:^|_)(?:te_?1?|text_encoders?(?:_1)?|clip_l|embedders_0|cond_stage_model)(?:_|$)/, 'text_encoder'],
];

/** Pieces inside a path that tell the part. */
const insides: readonly [RegExp, PartName][] = [
  [/(?:down|up|input|output)_blocks|mid(?:dle)?_block/, 'unet'],
  [/encoder_layers|resblocks|text_model/, 'text_encoder'],
];

/** Other names of layers: those of diffusers before peft, and of OpenCLIP. */
const spellings: readonly [RegExp, string][] = [
  [/_to_out$/, '_to_out_0'],
  [/_to_([qkv]|out)$/, '_$1_proj'],
  [/(?:transformer_)?resblocks_(\d+)_mlp_c_fc$/, 'encoder_layers_$1_mlp_fc1'],
  [/(?:transformer_)?resblocks_(\d+)_mlp_c_proj$/, 'encoder_layers_$1_mlp_fc2'],
  [/(?:transformer_)?resblocks_(\d+)_attn_out_proj$/, 'encoder_layers_$1_self_attn_out_proj'],
];

/** The end of a name that is a path of LDM's U-Net. */
const ldmPath =
  /(?:^|_)((?:(?:in|out)put_blocks|middle_block|time_embed|label_emb)_\d.*|(?<=^|unet_|diffusion_model_)out_[02])$/;

const ofOtherFamilies =
  /transformer_blocks_\d+_(?:attn_|ff_context)|(?:double|single|joint)_(?:transformer_)?blocks|^(?:lora_)?(?:transformer|prior)_/;

/** Finds the layers of a model by the names that files of adapters have for them. */
export class LayerNames {
  /** Paths by canonical name, without a text encoder's first module, which some files leave out. */
  private readonly paths = new Map<PartName, Map<string, string>>();
  private readonly longest: number = 0;
  private readonly layersPerLevel: number;

  constructor(model: PartTensors) {
    for (const part of adaptedParts) {
      const tensors = model.get(part);
      if (!tensors) continue;
      const own = [...tensors.keys()].map((name) => name.slice(0, name.lastIndexOf('.')));
      this.paths.set(part, new Map(own.map((path) => [canonicalName(path.replace(/^text_model\./, '')), path])));
      this.longest = own.reduce((most, { length }) => Math.max(most, length), this.longest);
    }
    const ofUnet = [...(model.get('unet')?.keys() ?? [])];
    this.layersPerLevel =
      ofUnet.filter((name) => /^down_blocks\.0\.resnets\.\d+\.conv1\.weight$/.test(name)).length || 2;
  }

  /**
   * The layers that a canonical name can mean: one, or one in each text encoder if nothing says in which. A path of the
   * model is looked for at the end of the name; what is before it says the part.
   */
  find(name: string): Place[] {
    const [, ldm] = ldmPath.exec(name) ?? [];
    const prefix = name.slice(0, name.length - (ldm?.length ?? 0));
    const others = spellings.flatMap(([from, to]) => (from.test(name) ? [name.replace(from, to)] : []));
    const names =
      ldm === undefined ? [name, ...others] : [prefix + canonicalName(diffusersUnetPath(ldm, this.layersPerLevel))];
    return names.map((one) => this.endOf(one)).find((places) => places.length > 0) ?? [];
  }

  private endOf(name: string): Place[] {
    for (let at = Math.max(0, name.length - this.longest); at < name.length; at++) {
      if (at > 0 && name[at - 1] !== '_') continue;
      const path = name.slice(at);
      const places = [...this.paths].flatMap(([part, paths]) =>
        paths.has(path) ? [{ part, path: paths.get(path)! }] : [],
      );
      const said = prefixes.find(([pattern]) => pattern.test(name.slice(0, at)));
      const found = places.filter(({ part }) => !said || part === said[1]);
      if (found.length > 0) return found;
    }
    return [];
  }

  /** Whether it is a layer after the last one of a text encoder, which clip skip leaves out. */
  isCutOff(name: string): boolean {
    return this.find(name.replace(/(encoder_layers|resblocks)_\d+(?=_)/, '$1_0')).some(({ part }) => part !== 'unet');
  }

  /** Why there is no layer of a name. @param hint the end of a sentence, perhaps empty */
  problemOf(name: string, key: string, hint: string): WeightsError {
    const [, said] = [...prefixes, ...insides].find(([pattern]) => pattern.test(name)) ?? [];
    if (ofOtherFamilies.test(name)) return misfit(`The key ${quote(key)} is for another family of models.`);
    if (said === undefined) return malformed(`The key ${quote(key)} belongs to no part of the model.`);
    const paths = this.paths.get(said);
    if (!paths)
      return misfit(
        said === 'text_encoder_2'
          ? `The key ${quote(key)} is for a model with several text encoders.`
          : `The key ${quote(key)} is for a ${said}, which the base model does not have.`,
      );
    // Exporters of PyTorch before 1.13 number nodes and weights, so nothing shows which layer a weight belongs to.
    if (![...paths.keys()].some((path) => path.includes('attn')))
      return misfit(
        `The base model's ${said} is quantised or was exported without its layers' names, so that it takes no LoRA.`,
      );
    return misfit(`The key ${quote(key)} is for a layer that the base model's ${said} does not have${hint}.`);
  }
}
