import type { AspectRatio } from '../common/sizes';
import { defaults, limits } from '../common/limits';
import type { Metadata } from '../common/column';
import { schedulerNames, schedulerOfClass } from '../common/schedulers';
import { ArrayField } from '../fields/fields-of-arrays';
import { BooleanField, EnumField, NumberField, TextField } from '../fields/fields';
import {
  CfgField,
  HighResolutionField,
  ImageField,
  MaskField,
  ModelField,
  NegativePromptField,
  OwnMetadataField,
  ReferencesField,
  SeedField,
  ShapeField,
  StepsField,
  StrengthField,
  WebhookField,
} from '../fields/fields-in-common';
import { type OutputFormat, outputFormats } from '../tasks/drawing';
import { ControlUseDto, FinetuneUseDto } from './inputs.dto';

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
  @WebhookField('the Generation') webhook?: string | null;
  @ModelField('Name of an installed model: sd1.5, sd2.1, shapes, or another that GET /v1/models lists.') model?: string;

  @NumberField({
    description: 'How many pictures; picture i has the seed `seed + i`.',
    integer: true,
    ...limits.numGenerations,
    optional: true,
    default: defaults.numGenerations,
  })
  num_generations?: number;

  @OwnMetadataField() metadata?: Metadata | null;
  @CfgField() cfg?: number;
  @StepsField() steps?: number;
  @SeedField('the first picture') seed?: number;

  @EnumField({
    description: "Sampling method; the model's own when left out.",
    values: schedulerNames,
    elsewhere: schedulerOfClass,
    name: 'Scheduler',
    optional: true,
  })
  scheduler?: string | null;

  @HighResolutionField() high_resolution?: boolean;

  @EnumField({
    description: 'File format of the pictures.',
    values: outputFormats,
    name: 'OutputFormat',
    optional: true,
    default: defaults.outputFormat,
  })
  output_format?: OutputFormat;

  @BooleanField({
    description:
      'Whether `(word:1.3)` and `[word]` in the texts weigh words, and `BREAK` ends a chunk of 75 tokens. Not every model can; `cannot` in `GET /v1/models` says so.',
    optional: true,
    default: defaults.promptWeighting,
  })
  prompt_weighting?: boolean;

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

  @ArrayField({
    description: 'ControlNets that are followed, with the pictures that they follow.',
    min: 0,
    max: limits.usedControls,
    element: () => ControlUseDto,
    optional: true,
  })
  control?: ControlUseDto[];

  @ReferencesField() references?: string[];
}
