import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { autoencoderKlConfigOf, type AutoencoderKlConfig } from '../architectures/autoencoder-kl';
import { clipTextConfigOf } from '../architectures/clip-text-model';
import { type ConfigJson, UnsupportedConfigError } from '../architectures/config';
import { unetConfigOf, type UNet2DConditionConfig } from '../architectures/unet-2d-condition-model';
import { cures, ModelFolderError, resultsOf } from '../errors';
import type { SchedulerJson } from '../schedulers/scheduler-config';
import { rethrowPassing } from '../sessions/graph-fault';
import { type ClipTokenizer, tokenizerOf } from '../tokenizer/clip-tokenizer';
import { type LatentRgbMap, readPreview } from '../vae/latent-preview';
import type { NamedTensors } from '../weights/named-tensor';
import type { PartName } from '../weights/original-names';
import type { Family, FamilyTextEncoder, ModelKind, PartTensors } from './family';
import { type JsonObject, readJsonFile } from './model-files';
import { type ModelDefaults, readModelDefaults } from './model-defaults';
import { type ModelWeights, readModelWeights } from './model-parts';
import { readModelScheduler } from './model-scheduler';
import { stableDiffusion1 } from './stable-diffusion-1';
import { stableDiffusion2 } from './stable-diffusion-2';
import { stableDiffusionXl } from './stable-diffusion-xl';

/** A text encoder of a model, and the tokenizer of its texts. */
export interface TextEncoderOfModel extends FamilyTextEncoder {
  tokens: ClipTokenizer;
}

/** A model without its weights: what it is, and where they are. */
export interface ModelFolder {
  path: string;
  family: Family;
  kind: ModelKind;
  tensors: PartTensors;
  /** Path of each part's weights, for messages. */
  files: ReadonlyMap<PartName, string>;
  unet: UNet2DConditionConfig;
  textEncoders: readonly TextEncoderOfModel[];
  vae: AutoencoderKlConfig;
  /** How the latents of its autoencoder are scaled. */
  scaling: { factor: number; shift: number };
  schedulerJson: SchedulerJson;
  /** Values that it is drawn with where a request does not say. */
  defaults: ModelDefaults;
  /** Edge in pixels of square pictures. */
  nativeSize: number;
  /** Whether a negative prompt that is not given is zeros, and not the empty text. */
  hasZerosForNoText: boolean;
  preview: LatentRgbMap | undefined;
}

/** Pipelines of diffusers and optimum, old and new, whose parts these are. */
const pipelineClasses =
  /^(Onnx|ORT)?(StableDiffusion(XL)?|LatentConsistencyModel)(Onnx|ControlNet|Img2Img|Inpaint|InstructPix2Pix)*Pipeline(Legacy)?$/;

/**
 * Reads a model: a folder of diffusers, an ONNX export, or a folder with one checkpoint in the original names. Only
 * headers of weights are read.
 * @throws ModelFolderError naming each file that is missing or wrong
 */
export async function readModelFolder(path: string): Promise<ModelFolder> {
  const found = await stat(path).catch(rethrowPassing);
  if (!found) throw new ModelFolderError(path, 'does not exist', cures.installAgain);
  if (!found.isDirectory()) throw new ModelFolderError(path, 'is not a folder', cures.installAgain);
  const index = await readModelIndex(path);
  const weights = await readModelWeights(path);
  refuseMissing(path, weights, ['unet', 'text_encoder', 'vae']);
  const configs = await readConfigs(path);
  const family = familyOf(weights, configs.text_encoder);
  refuseMissing(
    path,
    weights,
    family.textEncoders.map(({ part }) => part),
  );
  const read = await resultsOf({
    unet: () => ofConfig(path, 'unet', configs, unetConfigOf) ?? family.unet(weights.tensors),
    vae: () => ofConfig(path, 'vae', configs, autoencoderKlConfigOf) ?? { normNumGroups: 32 },
    scaling: () => scalingOf(join(path, 'vae', 'config.json'), configs, family),
    defaults: () => readModelDefaults(path),
    preview: () => readPreview(join(path, 'preview.json')),
  });
  const { defaults } = read;
  const { schedulerJson, textEncoders } = await resultsOf({
    schedulerJson: () =>
      readModelScheduler(path, family, {
        ...(weights.marks.has('v_pred') && { prediction_type: 'v_prediction' }),
        ...(weights.marks.has('ztsnr') && { rescale_betas_zero_snr: true }),
        ...(defaults.prediction_type && { prediction_type: defaults.prediction_type }),
      }),
    textEncoders: () => readTextEncoders(path, family, weights, configs, defaults),
  });
  return {
    ...{ path, family, ...read, schedulerJson, textEncoders },
    ...{ tensors: weights.tensors, files: weights.files },
    kind: kindOf(weights),
    nativeSize: defaults.size ?? sizeOf(configs.unet, weights.tensors) ?? family.nativeSize,
    hasZerosForNoText: index?.force_zeros_for_empty_prompt !== false && family.hasTimeIds,
  };
}

/**
 * The `model_index.json` of a folder, if there is one.
 * @throws ModelFolderError if it names a pipeline that draws in another way
 */
export async function readModelIndex(path: string): Promise<JsonObject | undefined> {
  const file = join(path, 'model_index.json');
  const index = await readJsonFile(file, { optional: true });
  const pipelineClass = index?._class_name;
  if (typeof pipelineClass === 'string' && !pipelineClasses.test(pipelineClass))
    throw new ModelFolderError(
      file,
      `describes a ${pipelineClass}, which is not Stable Diffusion 1.x, 2.x or XL`,
      cures.otherModel,
    );
  return index;
}

const partTitles: Partial<Record<PartName, string>> = {
  unet: 'U-Net (unet)',
  vae: 'autoencoder (vae)',
  text_encoder: 'text encoder (text_encoder)',
  text_encoder_2: 'second text encoder (text_encoder_2)',
};

function refuseMissing(path: string, { tensors, files }: ModelWeights, parts: readonly PartName[]): void {
  const missing = parts.filter((part) => !tensors.has(part)).map((part) => partTitles[part]);
  if (missing.length === 0) return;
  const has = [...tensors.keys()].map((part) => partTitles[part]).join(', ');
  throw new ModelFolderError(
    files.values().next().value ?? path,
    `lacks the ${missing.join(' and the ')}${has && ` and has only the ${has}`}`,
    cures.wholeModel,
  );
}

type Configs = Partial<Record<PartName, JsonObject>>;

/** The `config.json` of each part. */
async function readConfigs(path: string): Promise<Configs> {
  const read = async (...folders: string[]) => {
    for (const folder of folders) {
      const json = await readJsonFile(join(path, folder, 'config.json'), { optional: true });
      if (json) return json;
    }
    return undefined;
  };
  return resultsOf<Configs>({
    unet: () => read('unet'),
    vae: () => read('vae', 'vae_decoder'),
    text_encoder: () => read('text_encoder'),
    text_encoder_2: () => read('text_encoder_2'),
  });
}

/** A configuration in the architecture's words, if the part has one. */
function ofConfig<T>(path: string, part: PartName, configs: Configs, read: (json: ConfigJson) => T): T | undefined {
  const json = configs[part];
  if (!json) return undefined;
  try {
    return read(json);
  } catch (error) {
    if (!(error instanceof UnsupportedConfigError)) throw error;
    const file = join(path, part, 'config.json');
    throw new ModelFolderError(file, `describes another model: ${error.message.replace(/\.$/, '')}`, cures.otherModel);
  }
}

function familyOf({ tensors, marks }: ModelWeights, textEncoder: JsonObject | undefined): Family {
  if (tensors.get('unet')!.has('add_embedding.linear_1.weight')) return stableDiffusionXl;
  const width = tensors.get('text_encoder')!.get('text_model.embeddings.token_embedding.weight')?.shape[1] ?? 0;
  const isOpenClip = marks.has('openclip') || textEncoder?.hidden_act === 'gelu' || width >= 1024;
  return isOpenClip ? stableDiffusion2 : stableDiffusion1;
}

function kindOf({ tensors, files }: ModelWeights): ModelKind {
  const kinds: Readonly<Record<number, ModelKind>> = { 4: 'text-to-image', 8: 'instruct-pix2pix', 9: 'inpainting' };
  const unet = tensors.get('unet')!;
  const [out, into] = [unet.get('conv_out.weight')?.shape[0] ?? 4, unet.get('conv_in.weight')?.shape[1] ?? 4];
  // Other autoencoders than those of Stable Diffusion have other numbers of channels.
  const kind = into === out ? 'text-to-image' : kinds[into];
  if (!kind)
    throw new ModelFolderError(files.get('unet')!, `takes ${into} channels and gives ${out}`, cures.otherModel);
  return kind;
}

/** The largest edge of latents or pictures that a configuration may name: far more than any model was trained on. */
const largestSize = 4096;
/** Smaller ones are of models for tests, which draw what is asked for. */
const smallestSize = 32;

/** The edge of pictures that a U-Net's configuration tells. */
function sizeOf(unet: JsonObject | undefined, tensors: PartTensors): number | undefined {
  const size = unet?.sample_size;
  if (!Number.isInteger(size) || Number(size) < smallestSize || Number(size) > largestSize) return undefined;
  return Number(size) * scaleOf(tensors.get('vae')!);
}

/** Pixels of the picture's edge for one of the latents' edge. */
export function scaleOf(vae: NamedTensors): number {
  const levels = [...vae.keys()].filter((name) => /^decoder\.up_blocks\.\d+\.upsamplers\.0\.conv\.weight$/.test(name));
  return 2 ** (levels.length || 3);
}

/** Whether a model has what latents of a picture are made with; some exports have a decoder only. */
export function hasEncoder({ tensors }: Pick<ModelFolder, 'tensors'>): boolean {
  const vae = tensors.get('vae')!;
  return vae.has('encoder.conv_out.weight') || vae.has('encoder.layers.0.weight');
}

/** How the latents are scaled; diffusers leaves null what does not apply. */
function scalingOf(file: string, { vae = {} }: Configs, family: Family): ModelFolder['scaling'] {
  const { scaling_factor: factor = null, shift_factor: shift = null } = vae;
  if (factor !== null && (!Number.isFinite(factor) || factor === 0))
    throw new ModelFolderError(file, 'has a scaling_factor that is no number, infinite or 0', cures.correct);
  if (shift !== null && !Number.isFinite(shift))
    throw new ModelFolderError(file, 'has a shift_factor that is no number or infinite', cures.correct);
  return { factor: Number(factor ?? family.scalingFactor), shift: Number(shift ?? 0) };
}

async function readTextEncoders(
  path: string,
  family: Family,
  { isCheckpoint }: ModelWeights,
  configs: Configs,
  { clip_skip: clipSkip = 1 }: ModelDefaults,
): Promise<TextEncoderOfModel[]> {
  const read: TextEncoderOfModel[] = [];
  for (const encoder of family.textEncoders) {
    const config = ofConfig(path, encoder.part, configs, clipTextConfigOf) ?? encoder.config;
    const skip = (isCheckpoint ? encoder.skipOfCheckpoint : encoder.skip) + clipSkip - 1;
    const tokens = await tokenizerOf(join(path, encoder.tokenizer), { padToken: encoder.padToken });
    read.push({ ...encoder, config, skip, tokens });
  }
  return read;
}
