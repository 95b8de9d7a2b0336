import type { AspectRatio } from '../common/sizes';
import { limits } from '../common/limits';
import type { Metadata } from '../common/column';
import { Without } from '../fields/field-rule';
import { TextField } from '../fields/fields';
import {
  CfgField,
  HighResolutionField,
  ImageField,
  MaskField,
  NegativePromptField,
  OwnMetadataField,
  ReferencesField,
  SeedField,
  ShapeField,
  StepsField,
  StrengthField,
  WebhookField,
} from '../fields/fields-in-common';

const forGenerations = 'send it to POST /v1/sd/text-to-image, with this Fine-Tune in `finetunes`';
const forPrompts = 'a Style is a text; send the text to POST /v1/finetunes/{id}/prompts with it';

/** One element of the body of `POST /v1/finetunes/:id/prompts`. */
@Without({
  num_generations: 'each element of the array is drawn as one picture, so send an element for each',
  control: forGenerations,
  finetunes: forGenerations,
  scheduler: "the scheduler of the Fine-Tune's model draws",
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
  @SeedField('the picture') seed?: number;
  @HighResolutionField() high_resolution?: boolean;
  @ShapeField('the picture') aspect_ratio?: AspectRatio;
  @OwnMetadataField() metadata?: Metadata | null;
  @WebhookField('the Prompt') webhook?: string | null;
  @ImageField() image?: string | null;
  @StrengthField() strength?: number;
  @MaskField() mask?: string | null;
  @ReferencesField() references?: string[];
}

/** One element of the body of `POST /v1/finetunes/:id/styles`. */
@Without({
  num_generations: 'each element of the array draws one picture for each Style, so send more elements',
  image: forPrompts,
  mask: forPrompts,
  strength: forPrompts,
  references: forPrompts,
  scheduler: "the scheduler of the Fine-Tune's model draws",
})
export class ApplyStyleDto {
  @TextField({
    description: 'A Style, or a Collection, which applies each of its Styles in their order.',
    maxLength: limits.nameLength,
  })
  id: string;

  @SeedField('each picture') seed?: number;
  @HighResolutionField() high_resolution?: boolean;
  @ShapeField('the pictures', { asSent: true }) aspect_ratio?: AspectRatio | [AspectRatio];
  @OwnMetadataField() metadata?: Metadata | null;
  @WebhookField('each Prompt') webhook?: string | null;
}
