import type { AspectRatio } from '../common/sizes';
import { limits } from '../common/limits';
import type { Metadata } from '../common/column';
import { ArrayField } from '../fields/fields-of-arrays';
import { TextField } from '../fields/fields';
import {
  CfgField,
  HeightField,
  HighResolutionField,
  ImageField,
  MaskField,
  ModelField,
  NegativePromptField,
  NumGenerationsField,
  OutputFormatField,
  OwnMetadataField,
  PromptWeightingField,
  ReferencesField,
  SchedulerField,
  SeedField,
  ShapeField,
  StepsField,
  StrengthField,
  UserField,
  WebhookField,
  WidthField,
} from '../fields/fields-in-common';
import type { OutputFormat } from '../tasks/drawing';
import { ControlField, type ControlUseDto, FinetuneUseDto, OutpaintField, type PlaceInPictureDto } from './inputs.dto';

/** Body of `POST /v1/sd/text-to-image`. */
export class CreateGenerationDto {
  @TextField({
    description: 'What the picture shows.',
    maxLength: limits.promptLength,
    missingCode: 'PromptMissing',
    example: 'a red circle on a blue background',
  })
  prompt: string;

  @NegativePromptField() negative_prompt?: string | null;
  @ShapeField('the picture') aspect_ratio?: AspectRatio;
  @WidthField() width?: number;
  @HeightField() height?: number;
  @WebhookField('the Generation') webhook?: string | null;
  @ModelField('Name of an installed model: sd1.5, sd2.1, shapes, or another that GET /v1/models lists.') model?: string;

  @NumGenerationsField() num_generations?: number;
  @OwnMetadataField() metadata?: Metadata | null;
  @UserField() user?: string | null;
  @CfgField() cfg?: number;
  @StepsField() steps?: number;
  @SeedField('the first picture') seed?: number;

  @SchedulerField() scheduler?: string | null;
  @HighResolutionField() high_resolution?: boolean;

  @OutputFormatField() output_format?: OutputFormat;
  @PromptWeightingField() prompt_weighting?: boolean;

  @ArrayField({
    description:
      'Fine-Tunes of your own, all of one base model, which draws where `model` is left out. The words of the texts are used as they are written.',
    min: 0,
    max: limits.usedFinetunes,
    element: () => FinetuneUseDto,
    optional: true,
  })
  finetunes?: FinetuneUseDto[];

  @ImageField() image?: string | null;
  @StrengthField() strength?: number;
  @MaskField() mask?: string | null;
  @OutpaintField() outpaint?: boolean | PlaceInPictureDto;

  @ControlField() control?: ControlUseDto[];
  @ReferencesField() references?: string[];
}
