import type { Metadata } from '../common/column';
import { defaults, limits } from '../common/limits';
import { ArrayField, TextArrayField, UrlArrayField } from '../fields/fields-of-arrays';
import { NumberField, TextField, UrlField } from '../fields/fields';
import { ModelField, OwnMetadataField, SeedField, UserField, WebhookField } from '../fields/fields-in-common';
import { Without } from '../fields/field-rule';
import { ApplyStyleDto, CreatePromptDto } from '../finetune-prompts/create-prompt.dto';

const isChosenHere = 'it is chosen here, by the model and the pictures';

/** Body of `POST /v1/finetunes` that registers a Fine-Tune, trains it from `images_url`, or fetches its weights. */
@Without({
  instance_prompt: 'its made-up word is "token" here and its noun "name"; "captions" says what each picture shows',
  caption_prefix: '"captions" says what each picture shows',
  class_prompt: 'its noun is "name" here, and pictures of the class are drawn by the model itself',
  class_data: 'pictures of the class are drawn by the model itself',
  learning_rate: isChosenHere,
  lora_rank: isChosenHere,
  rank: isChosenHere,
  resolution: isChosenHere,
  num_generations: 'ask for pictures in "prompts"',
  lora_url: 'it is "weights_url" here',
  lora_weights: 'it is "weights_url" here',
})
export class CreateFinetuneDto {
  @TextField({
    description:
      'The class noun of the object, which every Prompt of the Fine-Tune must include. It has a letter or a digit.',
    maxLength: limits.nameLength,
    word: true,
    missingCode: 'FineTuneNameMissing',
    example: 'robot',
  })
  name: string;

  @TextField({
    description: 'A title of your own.',
    maxLength: limits.nameLength,
    optional: true,
    example: 'My tin robot',
  })
  title?: string | null;

  @TextField({
    description:
      'The word that calls the object; written right before the name where a Prompt lacks it. It has a letter or a digit.',
    maxLength: limits.tokenLength,
    word: true,
    pattern: /^\S+$/,
    patternMessage: 'must be one word without white space',
    optional: true,
    default: defaults.token,
  })
  token?: string;

  @ModelField('Name of the model that it is trained on, or that its weights were trained on.') model?: string;
  @OwnMetadataField() metadata?: Metadata | null;

  @UrlArrayField({
    description:
      'Pictures of the object, to train it from: uploads, pictures of your own records, or http(s) URLs. Without them and without `weights_url` the Fine-Tune is only registered, and `PUT /v1/finetunes/{id}/weights` takes weights that were trained elsewhere.',
    documentedMin: limits.trainingImages.min,
    max: limits.trainingImages.max,
    maxLength: limits.webhookLength,
    optional: true,
  })
  images_url?: string[];

  @UrlField({
    description:
      'In place of `images_url`: where to fetch weights that were trained elsewhere, as `PUT /v1/finetunes/{id}/weights` takes them: an http(s) URL, or `/v1/finetunes/{id}/weights` of a Fine-Tune of yours here. It is not shown in the record.',
    maxLength: limits.webhookLength,
    optional: true,
    example: 'https://example.com/tin-robot.safetensors',
  })
  weights_url?: string;

  @TextField({
    description: 'SHA-256 that the file at `weights_url` must have, in hexadecimal; another file is not taken.',
    maxLength: 64,
    pattern: /^[0-9a-fA-F]{64}$/,
    patternMessage: 'must be a SHA-256: 64 hexadecimal digits',
    optional: true,
  })
  weights_sha256?: string;

  @TextArrayField({
    description:
      'What each picture shows, as many as `images_url`; "a photo of <token> <name>" without them. Needs `images_url`, as do `steps` and `seed`.',
    max: limits.trainingImages.max,
    maxLength: limits.promptLength,
    optional: true,
  })
  captions?: string[] | null;

  @NumberField({
    description:
      "Steps of the training. Without them those of the model's `darkroom.json`, or 100 for each picture, within 500 and 3000.",
    integer: true,
    ...limits.trainingSteps,
    optional: true,
  })
  steps?: number;

  @SeedField('the training: the same pictures, captions, steps and seed give the same weights') seed?: number;
  @WebhookField('the Fine-Tune') webhook?: string | null;
  @UserField() user?: string | null;

  @ArrayField({
    description:
      'Prompts to draw when it has its weights, as `POST /v1/finetunes/{id}/prompts` takes them; one without a `user` has that of the Fine-Tune. Needs `images_url` or `weights_url`, as do `styles` and `webhook`.',
    element: () => CreatePromptDto,
    min: 1,
    max: limits.arrayLength,
    optional: true,
  })
  prompts?: CreatePromptDto[] | null;

  @ArrayField({
    description:
      'Styles to draw it in when it has its weights, as `POST /v1/finetunes/{id}/styles` takes them; the `user` is as with `prompts`.',
    element: () => ApplyStyleDto,
    min: 1,
    max: limits.arrayLength,
    optional: true,
  })
  styles?: ApplyStyleDto[] | null;
}

const cannotBeChanged = 'it cannot be changed; register another Fine-Tune';

/** Body of `PATCH /v1/finetunes/:id`: what is left out, or null, stays. */
@Without({ name: cannotBeChanged, token: cannotBeChanged, model: cannotBeChanged })
export class UpdateFinetuneDto {
  @TextField({
    description: 'A title of your own; an empty one removes it.',
    minLength: 0,
    maxLength: limits.nameLength,
    optional: true,
    example: 'My tin robot',
  })
  title?: string;

  @OwnMetadataField() metadata?: Metadata;

  @NumberField({
    description:
      'By how much its LoRA changes the model. It needs weights. Prompts that were accepted before keep the scale of then.',
    ...limits.weightsScale,
    optional: true,
    example: 0.8,
  })
  scale?: number;
}
