import type { AspectRatio } from '../common/sizes';
import { limits } from '../common/limits';
import type { Metadata } from '../common/column';
import { Without } from '../fields/field-rule';
import { TextField } from '../fields/fields';
import {
  CfgField,
  HeightField,
  HighResolutionField,
  ImageField,
  MaskField,
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
import { ControlField, type ControlUseDto, OutpaintField, type PlaceInPictureDto } from '../generations/inputs.dto';
import type { OutputFormat } from '../tasks/drawing';

const forPrompts = 'a Style is a text; send the text to POST /v1/finetunes/{id}/prompts with it';

/** One element of the body of `POST /v1/finetunes/:id/prompts`. */
@Without({
  finetunes: 'send it to POST /v1/sd/text-to-image, with this Fine-Tune in `finetunes`',
})
export class CreatePromptDto {
  @TextField({
    description: "What the picture shows; it includes the Fine-Tune's name as a word.",
    maxLength: limits.promptLength,
    missingCode: 'PromptMissing',
    example: 'a robot on a striped background',
  })
  prompt: string;

  @NegativePromptField() negative_prompt?: string | null;
  @CfgField() cfg?: number;
  @StepsField() steps?: number;
  @SeedField('the first picture') seed?: number;
  @NumGenerationsField() num_generations?: number;
  @SchedulerField() scheduler?: string | null;
  @HighResolutionField() high_resolution?: boolean;
  @OutputFormatField() output_format?: OutputFormat;
  @PromptWeightingField() prompt_weighting?: boolean;
  @ShapeField('the picture') aspect_ratio?: AspectRatio;
  @WidthField() width?: number;
  @HeightField() height?: number;
  @OwnMetadataField() metadata?: Metadata | null;
  @UserField() user?: string | null;
  @WebhookField('the Prompt') webhook?: string | null;
  @ImageField() image?: string | null;
  @StrengthField() strength?: number;
  @MaskField() mask?: string | null;
  @ControlField() control?: ControlUseDto[];
  @OutpaintField() outpaint?: boolean | PlaceInPictureDto;
  @ReferencesField() references?: string[];
}

/** One element of the body of `POST /v1/finetunes/:id/styles`. */
@Without({
  image: forPrompts,
  mask: forPrompts,
  strength: forPrompts,
  control: forPrompts,
  outpaint: forPrompts,
  references: forPrompts,
})
export class ApplyStyleDto {
  @TextField({
    description: 'A Style, or a Collection, which applies each of its Styles in their order.',
    maxLength: limits.nameLength,
  })
  id: string;

  @SeedField('the first picture of each Style') seed?: number;
  @NumGenerationsField() num_generations?: number;
  @SchedulerField() scheduler?: string | null;
  @HighResolutionField() high_resolution?: boolean;
  @OutputFormatField() output_format?: OutputFormat;
  @PromptWeightingField() prompt_weighting?: boolean;
  @ShapeField('the pictures', { asSent: true }) aspect_ratio?: AspectRatio | [AspectRatio];
  @WidthField() width?: number;
  @HeightField() height?: number;
  @OwnMetadataField() metadata?: Metadata | null;
  @UserField() user?: string | null;
  @WebhookField('each Prompt') webhook?: string | null;
}
