import { join } from 'node:path';
import { type ClipTextConfig, clipTextConfigOf } from '../architectures/clip-text-model';
import { unetConfigOf, type UNet2DConditionConfig } from '../architectures/unet-2d-condition-model';
import { ClipConditionerFiles, ClipEncoderFiles, type ClipEncoderUse } from '../conditioners/clip-conditioner';
import { UnetFiles } from '../denoisers/unet';
import { cures, ModelFolderError, resultsOf } from '../errors';
import type { SchedulerJson } from '../schedulers/scheduler-config';
import { tokenizerOf } from '../tokenizer/clip-tokenizer';
import type { JsonObject } from '../weights/folder-files';
import type { NamedTensors } from '../weights/named-tensor';
import type { PartTensors } from '../weights/original-names';
import { autoencoderKl, scaleFactorOf } from './autoencoders';
import type { Family, ModelParts, ReadFiles } from './family';
import { defaultsFile } from './model-defaults';
import { configOf } from './read-config';

/** A text encoder of a family, and what a model's files need not say of it. */
interface FamilyTextEncoder extends ClipEncoderUse {
  tokenizer: 'tokenizer' | 'tokenizer_2';
  config: ClipTextConfig;
  /** Token that pads in CLIP's own vocabulary. */
  padToken: 'end' | 'zero';
  /** Last layers that are left out of a checkpoint with original names, which has them all. */
  skipOfCheckpoint: number;
}

/** In what Stable Diffusion 1.x, 2.x and XL differ. */
interface Version extends Pick<Family, 'name' | 'title' | 'nativeSize' | 'recognises'> {
  textEncoders: readonly FamilyTextEncoder[];
  unet: (parts: PartTensors) => UNet2DConditionConfig;
  scalingFactor: number;
  scheduler: SchedulerJson;
  hasZerosForNoText: boolean;
}

/** A family of Stable Diffusion, and the values of its U-Net where neither shape nor `config.json` tells them. */
export interface StableDiffusion extends Family {
  readonly unetConfig: (parts: PartTensors) => UNet2DConditionConfig;
}

/** The noise schedule that all of them were trained with. Source: their `scheduler_config.json`. */
export const trainedNoise = {
  num_train_timesteps: 1000,
  beta_start: 0.00085,
  beta_end: 0.012,
  beta_schedule: 'scaled_linear',
  steps_offset: 1,
  clip_sample: false,
} as const satisfies SchedulerJson;

const pipelines =
  /^(Onnx|ORT)?(StableDiffusion(XL)?|LatentConsistencyModel)(Onnx|ControlNet|Img2Img|Inpaint|InstructPix2Pix)*Pipeline(Legacy)?$/;

const partTitles: Record<ClipEncoderUse['part'], string> = {
  text_encoder: 'text encoder',
  text_encoder_2: 'second text encoder',
};

export function stableDiffusion(version: Version): StableDiffusion {
  const { name, title, nativeSize, recognises, textEncoders, unet } = version;
  return {
    ...{ name, title, nativeSize, recognises, unetConfig: unet, pipelines },
    denoiserPart: 'unet',
    parts: {
      unet: 'U-Net',
      ...Object.fromEntries(textEncoders.map(({ part }) => [part, partTitles[part]])),
      vae: 'autoencoder',
    },
    latentChannels: (tensors) => {
      const [taken, predicted] = [
        tensors.get('unet')!.get('conv_in.weight')?.shape[1],
        tensors.get('unet')!.get('conv_out.weight')?.shape[0],
      ];
      // Inpainting and its kin take further channels.
      return taken && predicted && Math.min(taken, predicted);
    },
    // As diffusers' StableDiffusionPipeline: trained with timesteps that begin at 1 and with latents of any size.
    scheduler: { usual: version.scheduler, fixed: { steps_offset: 1, clip_sample: false } },
    // The last are names of a checkpoint's autoencoder.
    keptInFloat: /emb|norm|text_projection|^first_stage_model/,
    partsOf: (files) => partsOf(version, files),
  };
}

async function partsOf(version: Version, files: ReadFiles): Promise<ModelParts> {
  const { tensors, files: from } = files;
  const scaleFactor = scaleFactorOf(tensors.get('vae')!);
  const parts = await resultsOf({
    denoiser: () => {
      const config = configOf(files, 'unet', unetConfigOf) ?? version.unet(tensors);
      const size = sizeOf(files.configs.get('unet'), scaleFactor);
      return new UnetFiles(tensors.get('unet')!, from.get('unet')!, config, scaleFactor, size);
    },
    conditioner: () => conditionerOf(version, files),
    autoencoder: () => autoencoderKl(files, { factor: version.scalingFactor, shift: 0 }),
  });
  return { ...parts, cannot: {} };
}

async function conditionerOf(version: Version, files: ReadFiles): Promise<ClipConditionerFiles> {
  const { path, tensors, files: from, isCheckpoint, index } = files;
  const encoders: ClipEncoderFiles[] = [];
  for (const encoder of version.textEncoders) {
    const { part, tokenizer, padToken } = encoder;
    const config = configOf(files, part, clipTextConfigOf) ?? encoder.config;
    const skip = isCheckpoint ? encoder.skipOfCheckpoint : encoder.skip;
    const clipSkip = clipSkipOf(files, tensors.get(part)!, skip);
    const tokens = await tokenizerOf(join(path, tokenizer), { padToken });
    encoders.push(
      new ClipEncoderFiles(
        { ...encoder, skip: skip + clipSkip - 1 },
        tensors.get(part)!,
        from.get(part)!,
        config,
        tokens,
      ),
    );
  }
  const hasZeros = index?.force_zeros_for_empty_prompt !== false && version.hasZerosForNoText;
  return new ClipConditionerFiles(encoders, hasZeros);
}

/**
 * The model's `clip_skip`; 1 where it has none. @param skip layers of this text encoder that are left out in any case
 * @throws ModelFolderError if there are not so many layers
 */
function clipSkipOf({ path, defaults: { clip_skip: clipSkip = 1 } }: ReadFiles, encoder: NamedTensors, skip: number) {
  const names = [...encoder.keys()].flatMap((name) => /^text_model\.encoder\.layers\.\d+\./.exec(name) ?? []);
  const layers = new Set(names).size;
  const most = layers - skip + 1;
  if (clipSkip === 1 || layers === 0 || clipSkip <= most) return clipSkip;
  const reason = `has a clip_skip of ${clipSkip}, and a text encoder of ${layers} layers takes one of at most ${most}`;
  throw new ModelFolderError(join(path, defaultsFile), reason, cures.correctOrRemove);
}

/** The largest edge of latents or pictures that a configuration may name: far more than any model was trained on. */
const largestSize = 4096;
/** Smaller ones are of models for tests, which draw what is asked for. */
const smallestSize = 32;

/** The edge of pictures that a U-Net's configuration tells. */
function sizeOf(unet: JsonObject | undefined, scaleFactor: number): number | undefined {
  const size = unet?.sample_size;
  if (!Number.isInteger(size) || Number(size) < smallestSize || Number(size) > largestSize) return undefined;
  return Number(size) * scaleFactor;
}

/** Whether a model draws with a U-Net, as all of these do. */
export const hasUnet = ({ tensors }: { tensors: PartTensors }): boolean => tensors.has('unet');
