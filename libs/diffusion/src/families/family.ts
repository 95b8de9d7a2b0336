import type { ClipTextConfig } from '../architectures/clip-text-model';
import type { UNet2DConditionConfig } from '../architectures/unet-2d-condition-model';
import type { SchedulerJson } from '../schedulers/scheduler-config';
import type { NamedTensors } from '../weights/named-tensor';
import type { PartName } from '../weights/original-names';

/** The weights of a model by part, with diffusers' names. */
export type PartTensors = ReadonlyMap<PartName, NamedTensors>;

export type FamilyName = 'sd1' | 'sd2' | 'sdxl';

/** Kind of model, by what it draws from. */
export type ModelKind = 'text-to-image' | 'inpainting' | 'instruct-pix2pix';

/** Edges of a picture in pixels. */
export interface PictureSize {
  width: number;
  height: number;
}

/** A text encoder of a family, and what a model's files need not say of it. */
export interface FamilyTextEncoder {
  part: 'text_encoder' | 'text_encoder_2';
  tokenizer: 'tokenizer' | 'tokenizer_2';
  config: ClipTextConfig;
  /** Token that pads in CLIP's own vocabulary. */
  padToken: 'end' | 'zero';
  /** Last layers that are left out: always, and of a checkpoint with original names, which has them all. */
  skip: number;
  skipOfCheckpoint: number;
  /** Whether its states are normalised as the last one is. */
  isNormed: boolean;
  /** Whether the state of the text's end is taken too. */
  isPooled: boolean;
}

/** Values that the models of a family have in common, where a model's own files do not say otherwise. */
export interface Family {
  readonly name: FamilyName;
  /** Its name in sentences. */
  readonly title: string;
  readonly textEncoders: readonly FamilyTextEncoder[];
  readonly unet: (parts: PartTensors) => UNet2DConditionConfig;
  readonly scalingFactor: number;
  /** Edge in pixels of the square pictures that it was trained on. */
  readonly nativeSize: number;
  readonly scheduler: SchedulerJson;
  /** Whether the U-Net is told the size of the picture. */
  readonly hasTimeIds: boolean;
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
