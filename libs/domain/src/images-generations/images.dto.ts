import { PickType } from '@nestjs/swagger';
import { limits } from '../common/limits';
import { Field } from '../fields/field-rule';
import { BooleanField, EnumField, type FieldOptions, NumberField, smallField, TextField } from '../fields/fields';
import { ModelField } from '../fields/fields-in-common';
import { ArrayField, ObjectField } from '../fields/fields-of-arrays';
import { Integer, Part, PartOrNull, Parts, Text, TextOrNull, Word } from '../fields/fields-of-answers';
import { urlProblem } from '../fields/text-rules';
import { outputFormats, type OutputFormat } from '../tasks/drawing';

export const imageResponseFormats = ['url', 'b64_json'] as const;

/** Qualities of OpenAI's API; the last three are names of others. */
export const imageQualities = ['low', 'medium', 'high', 'xhigh', 'max', 'auto', 'standard', 'hd'] as const;
export type ImageQuality = (typeof imageQualities)[number];
const shownQualities = imageQualities.slice(0, 5);

/** A field of OpenAI's API that is refused with a sentence, unless it is null. */
const RefusedField = (message: string) => Field({ optional: true, isSmall: () => false, check: () => message });

/** One of some words that change nothing here. */
const IgnoredField = (name: string, ...values: string[]) =>
  EnumField({ description: 'Taken, and changes nothing.', values, name, optional: true });

const animated = 'is not taken: pictures do not move here';
const drawnSvg = 'is not taken: pictures are made of pixels here';

/** A person in the caller's words; one without a character counts as none. */
const UserField = (options: Pick<FieldOptions, 'description'>) =>
  TextField({ ...options, minLength: 0, maxLength: limits.openai.user, optional: true });

/** Body of `POST /v1/images/generations`, in the shape of OpenAI's API. */
export class CreateImagesDto {
  @TextField({
    description: 'What the pictures show.',
    maxLength: limits.promptLength,
    missingCode: 'PromptMissing',
    example: 'a red circle on a blue background',
  })
  prompt: string;

  @ModelField('An installed model that GET /v1/models lists, or a name of `MODEL_ALIASES`, such as gpt-image-2.')
  model?: string;

  @NumberField({
    description: 'How many pictures.',
    integer: true,
    ...limits.openai.images,
    optional: true,
    default: 1,
  })
  n?: number;

  @TextField({
    description:
      'Width and height in pixels, such as 512x512; a size that the model does not draw is refused. auto is the square one, and with pictures the nearest to the first.',
    maxLength: 16,
    pattern: /^(auto|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$/,
    patternMessage: 'must be auto or a width and a height in pixels, such as 512x512',
    optional: true,
    default: 'auto',
    example: '512x512',
  })
  size?: string;

  @EnumField({
    description:
      "A share of the model's steps: low is a half, medium three quarters, high and standard and auto all of them, xhigh and hd one and a half times as many, max twice. A distilled model always draws its own.",
    values: imageQualities,
    name: 'ImageQuality',
    optional: true,
    default: 'auto',
  })
  quality?: ImageQuality;

  @EnumField({
    description: 'Pictures are opaque: transparent is refused.',
    values: ['opaque', 'auto'],
    name: 'ImageBackground',
    refused: { transparent: 'cannot be transparent: the models here draw opaque pictures; leave it out' },
    optional: true,
  })
  background?: string;

  @EnumField({
    description: 'File format.',
    values: outputFormats,
    name: 'OutputFormat',
    refused: {
      gif: 'cannot be gif: pictures do not move here',
      svg: 'cannot be svg: pictures are made of pixels here',
    },
    optional: true,
    default: 'png',
  })
  output_format?: OutputFormat;

  @NumberField({
    description: 'The quality of a JPEG or WebP: 100 is the best and the largest file.',
    integer: true,
    ...limits.compression,
    optional: true,
  })
  output_compression?: number;

  @EnumField({
    description: 'Taken: what is filtered is a matter of the key.',
    values: ['auto', 'low'],
    name: 'ImageModeration',
    optional: true,
  })
  moderation?: string;

  @EnumField({
    description:
      'Whether the answer has URLs of the pictures, or the pictures themselves in base64; both where it is left out.',
    values: imageResponseFormats,
    name: 'ImageResponseFormat',
    optional: true,
  })
  response_format?: (typeof imageResponseFormats)[number];

  @BooleanField({ description: 'Whether the answer is a stream of events.', optional: true, default: false })
  stream?: boolean;

  @NumberField({
    description: 'How many pictures of steps a stream has at most.',
    integer: true,
    ...limits.openai.partialImages,
    optional: true,
    default: 0,
  })
  partial_images?: number;

  @UserField({ description: 'Who the pictures are for, in your words; told again in the answer.' })
  safety_identifier?: string;

  @UserField({ description: 'The same, where `safety_identifier` is absent or empty.' }) user?: string;

  @IgnoredField('ImageComplexity', 'low', 'medium', 'high') complexity?: string;
  @IgnoredField('ImageStyle', 'vivid', 'natural') style?: string;
  @IgnoredField('ImageFidelity', 'high', 'low') input_fidelity?: string;

  @RefusedField('is not taken here; draw what it marks into the picture, or send a mask') markup?: null;
  @RefusedField(animated) frame_count?: null;
  @RefusedField(animated) frame_duration_ms?: null;
  @RefusedField(drawnSvg) svg?: null;
}

/** What stands in place of a data URL, whose picture has been received by then. */
export const isReceived = (value: unknown): boolean => typeof value === 'string' && /^data:\d$/.test(value);

const ImageUrlField = () =>
  smallField(
    {
      description:
        'A data URL of a PNG, JPEG or WebP, at most 20 MB of it; or the URL of an upload, of a picture of your records, or of one elsewhere.',
      optional: true,
      example: 'https://example.com/sketch.png',
    },
    { type: String },
    (value) => (isReceived(value) ? undefined : urlProblem(value, limits.webhookLength)),
    (value) => typeof value !== 'object',
  );

/** A picture of an edit in JSON. */
export class SentImageDto {
  @ImageUrlField() image_url?: string;

  @TextField({ description: 'The id of an upload.', maxLength: limits.nameLength, optional: true }) file_id?: string;
}

/** JSON body of `POST /v1/images/edits`, in the shape of OpenAI's API. */
export class EditImagesDto extends CreateImagesDto {
  @ArrayField({
    description: 'The picture to change, or up to four that the model looks at.',
    min: 1,
    max: limits.usedReferences,
    element: () => SentImageDto,
  })
  images: SentImageDto[];

  @ObjectField({
    description: 'A picture whose transparent parts are repainted. Of the size of the first of `images`.',
    type: () => SentImageDto,
    optional: true,
  })
  mask?: SentImageDto;
}

/** One picture, in the shape of OpenAI's API. */
export class ImageDto {
  @Text('Unless `response_format` is b64_json.', { format: 'uri', required: false }) url?: string;
  @Text('Unless `response_format` is url.', { required: false, example: 'iVBORw0KGgo=' }) b64_json?: string;
}

/** Tokens of what was sent, by their kind. */
export class ImageTokensDto {
  @Integer('Of the pictures that the model looks at.', { example: 0 }) image_tokens: number;
  @Integer('Of the prompt.', { example: 8 }) text_tokens: number;
}

/** Tokens of a request. */
export class ImagesUsageDto {
  @Integer('', { example: 8 }) input_tokens: number;
  @Part(ImageTokensDto) input_tokens_details: ImageTokensDto;
  @Integer('0: a picture is not drawn in tokens.', { example: 0 }) output_tokens: number;
  @Part(ImageTokensDto) output_tokens_details: ImageTokensDto;
  @Integer('', { example: 8 }) total_tokens: number;
}

/** Pictures, in the shape of OpenAI's API. */
export class ImagesDto {
  @Integer('When they were finished, in seconds since the epoch.', { example: 1795166493 }) created: number;
  @Parts(ImageDto) data: ImageDto[];
  @PartOrNull(ImagesUsageDto, 'Null where the model is gone meanwhile.') usage: ImagesUsageDto | null;
  @Text('Width and height in pixels.', { example: '512x512' }) size: string;
  @Word(shownQualities, 'ShownImageQuality') quality: string;
  @Word(['opaque'], 'ShownImageBackground') background: 'opaque';
  @Word(outputFormats, 'OutputFormat') output_format: OutputFormat;
  @TextOrNull('Who they are for, as it was sent.') safety_identifier: string | null;
}

/** What each event of a stream says. */
class StreamedImageDto extends PickType(ImagesDto, ['size', 'quality', 'background', 'output_format']) {
  @Text('The type of the event.', { example: 'image_generation.completed' }) type: string;
  @Text('', { example: 'iVBORw0KGgo=' }) b64_json: string;
  @Integer('In seconds since the epoch.', { example: 1795166493 }) created_at: number;
}

/** The small picture of a step: a JPEG, whatever the format of the pictures. */
export class PartialImageDto extends StreamedImageDto {
  @Integer('From 0 on.', { example: 0 }) partial_image_index: number;
}

/** A finished picture of a stream. */
export class CompletedImageDto extends StreamedImageDto {
  @Text('', { format: 'uri' }) url: string;
  @PartOrNull(ImagesUsageDto, 'Of the whole request.') usage: ImagesUsageDto | null;
  @TextOrNull('Who it is for, as it was sent.') safety_identifier: string | null;
}
