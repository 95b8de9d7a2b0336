import { quote } from '../safetensors/quote';
import { canonicalName } from './adapter';
import { diffusersUnetPath, type PartName, type PartTensors } from '../weights/original-names';
import { diffusersLayer, type NamedFamily } from '../weights/original-transformer-names';
import { familyOf, withoutPrefix } from './layer-families';
import type { Rows } from './matrices';
import { malformed, misfit, type WeightsError } from './weights-error';

/** A layer of a model. */
export interface Place {
  part: PartName;
  /** `down_blocks.0.attentions.0.proj_in` */
  path: string;
}

/** A layer of a model that one of a file changes. */
export interface Target {
  /** One, or one in each text encoder if nothing says in which. */
  places: Place[];
  /** The outputs that are for it, if the file has the name of an original model, which may join several layers. */
  rows?: Rows;
}

/** What a name matches, and the part that this says it is for; undefined is none that an adapter can change. */
type PartPattern = readonly [RegExp, PartName | undefined];

/** How files of adapters write the names of a model's layers. All names are as `canonicalName` has them. */
interface Naming {
  /** Parts that an adapter can change. */
  parts: readonly PartName[];
  /** What a name has somewhere, where no layer is found: for messages. */
  pieces: readonly PartPattern[];
  /** What a layer of this name may be called in a model with a U-Net, the likeliest first. */
  spellingsOf?: (name: string) => string[];
}

const textEncoderPrefixes: readonly PartPattern[] = [
  [/(?:^|_)(?:te_?2|text_encoders?_2|clip_g|embedders_1)(?:_|$)/, 'text_encoder_2'],
  [/(?:^|_)(?:te_?1?|text_encoders?(?:_1)?|clip_l|embedders_0|cond_stage_model)(?:_|$)/, 'text_encoder'],
];

/** Tools write other prefixes too, such as `lycoris_` or `base_model_model_`, which say nothing and do no harm. */
const unetPrefixes: readonly PartPattern[] = [
  [/control|first_stage|vae|prior|refiner|image_encoder/, undefined],
  [/unet|diffusion_model/, 'unet'],
  ...textEncoderPrefixes,
];

const unetPiece: PartPattern = [/(?:down|up|input|output)_blocks|mid(?:dle)?_block/, 'unet'];
const textEncoderPiece: PartPattern = [/encoder_layers|resblocks|text_model/, 'text_encoder'];

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

/** The names of layers of a U-Net and of CLIP's text encoders. */
function unetNaming(model: PartTensors): Naming {
  const ofUnet = [...(model.get('unet')?.keys() ?? [])];
  const layersPerLevel =
    ofUnet.filter((name) => /^down_blocks\.0\.resnets\.\d+\.conv1\.weight$/.test(name)).length || 2;
  const spellingsOf = (name: string): string[] => {
    const [, ldm] = ldmPath.exec(name) ?? [];
    if (ldm !== undefined) return [name.slice(0, -ldm.length) + canonicalName(diffusersUnetPath(ldm, layersPerLevel))];
    return [name, ...spellings.flatMap(([from, to]) => (from.test(name) ? [name.replace(from, to)] : []))];
  };
  return {
    parts: ['unet', 'text_encoder', 'text_encoder_2'],
    pieces: [...unetPrefixes, unetPiece, textEncoderPiece],
    spellingsOf,
  };
}

/** A transformer's paths are looked for behind known prefixes only, in `ofTransformer`. */
const transformerNaming: Naming = {
  parts: ['transformer'],
  pieces: [...textEncoderPrefixes, textEncoderPiece, [/./, 'transformer']],
};

/** The names of layers do not tell for sure of which U-Net they are. */
const kindOf = (family: string): string => family.replace(/ XL$/, '');

const namedFamilies: readonly NamedFamily[] = ['flux2', 'z-image'];

/** Finds the layers of a model by the names that files of adapters have for them. */
export class LayerNames {
  /** Paths by canonical name, without a text encoder's first module, which some files leave out. */
  private readonly paths = new Map<PartName, Map<string, string>>();
  private readonly longest: number = 0;
  private readonly naming: Naming;

  constructor(private readonly model: PartTensors) {
    this.naming = model.has('transformer') ? transformerNaming : unetNaming(model);
    for (const part of this.naming.parts) {
      const tensors = model.get(part);
      if (!tensors) continue;
      const own = [...tensors.keys()].map((name) => name.slice(0, name.lastIndexOf('.')));
      this.paths.set(part, new Map(own.map((path) => [canonicalName(path.replace(/^text_model\./, '')), path])));
      this.longest = own.reduce((most, { length }) => Math.max(most, length), this.longest);
    }
  }

  /** The layers that one of a canonical name changes. */
  find(name: string): Target[] {
    const own = this.paths.get('transformer');
    if (own) return this.ofTransformer(name, own);
    const names = this.naming.spellingsOf?.(name) ?? [];
    const places = names.map((one) => this.endOf(one)).find((found) => found.length > 0);
    return places ? [{ places }] : [];
  }

  /**
   * Its names are diffusers' or those of whoever published it. Nothing unknown may stand before a path, because
   * `transformer_blocks.0` is also the end of `single_transformer_blocks.0`, which may be of another model.
   */
  private ofTransformer(name: string, own: ReadonlyMap<string, string>): Target[] {
    const at = (path: string): Place => ({ part: 'transformer', path });
    // In some files `tran` was taken away with the prefix.
    const path = withoutPrefix(name).replace(/^sformer_/, 'transformer_');
    if (own.has(path)) return [{ places: [at(own.get(path)!)] }];
    for (const family of namedFamilies) {
      const { paths, isSwapped } = diffusersLayer(family, path);
      const found = paths.flatMap((one) => own.get(canonicalName(one)) ?? []);
      if (found.length === paths.length)
        return found.map((one, index) => ({ places: [at(one)], rows: { index, count: paths.length, isSwapped } }));
    }
    return [];
  }

  /** A path of the model is looked for at the end of the name; what is before it says the part. */
  private endOf(name: string): Place[] {
    for (let at = Math.max(0, name.length - this.longest); at < name.length; at++) {
      if (at > 0 && name[at - 1] !== '_') continue;
      const path = name.slice(at);
      const places = [...this.paths].flatMap(([part, paths]) =>
        paths.has(path) ? [{ part, path: paths.get(path)! }] : [],
      );
      if (places.length === 0) continue;
      const said = unetPrefixes.find(([pattern]) => pattern.test(name.slice(0, at)));
      const found = places.filter(({ part }) => !said || part === said[1]);
      if (found.length > 0) return found;
    }
    return [];
  }

  /** Whether it is a layer after the last one of a text encoder, which clip skip leaves out. */
  isCutOff(name: string): boolean {
    return this.find(name.replace(/(encoder_layers|resblocks)_\d+(?=_)/, '$1_0')).some(({ places }) =>
      places.some(({ part }) => part.startsWith('text_encoder')),
    );
  }

  /** The name of a layer that only another family of models has, and that family. */
  ofOtherFamily(names: Iterable<string>): ReturnType<typeof familyOf> {
    const [own] = this.naming.parts.map((part) => familyOf(this.paths.get(part)?.keys() ?? []));
    const told = familyOf(names);
    return own && told && kindOf(told.family) !== kindOf(own.family) ? told : undefined;
  }

  /** Why there is no layer of a name. @param hint the end of a sentence, perhaps empty */
  problemOf(name: string, key: string, hint: string): WeightsError {
    const { parts, pieces } = this.naming;
    const [, said] = pieces.find(([pattern]) => pattern.test(name)) ?? [];
    const other = this.ofOtherFamily([name]);
    if (other) return misfit(`The key ${quote(key)} is for ${other.family}, which is another family of models.`);
    if (parts.includes('unet') && /^(?:lora_)?(?:transformer|prior)_/.test(name))
      return misfit(`The key ${quote(key)} is for another family of models.`);
    if (said === undefined) return malformed(`The key ${quote(key)} belongs to no part of the model.`);
    const paths = this.paths.get(said);
    if (!paths && this.model.has(said))
      return misfit(`The key ${quote(key)} is for the ${said}; of the base model only the ${parts[0]} takes a LoRA.`);
    if (!paths)
      return misfit(
        said === 'text_encoder_2'
          ? `The key ${quote(key)} is for a model with several text encoders.`
          : `The key ${quote(key)} is for a ${said}, which the base model does not have.`,
      );
    // Exporters of PyTorch before 1.13 number nodes and weights, so nothing shows which layer a weight belongs to.
    if (![...paths.keys()].some((path) => /attn|attention_/.test(path)))
      return misfit(
        `The base model's ${said} is quantised or was exported without its layers' names, so that it takes no LoRA.`,
      );
    return misfit(`The key ${quote(key)} is for a layer that the base model's ${said} does not have${hint}.`);
  }
}
