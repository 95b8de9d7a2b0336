import { defaults, limits } from '../common/limits';
import { EnumField, NumberField, TextField } from '../fields/fields';
import { ModelField } from '../fields/fields-in-common';
import { Integer, Parts, Text } from '../fields/fields-of-answers';

export const imageResponseFormats = ['url', 'b64_json'] as const;

/** Body of `POST /v1/images/generations`, in the shape of OpenAI's API. */
export class CreateImagesDto {
  @TextField({
    description: 'What the pictures show.',
    maxLength: limits.promptLength,
    missingCode: 'PromptMissing',
    example: 'a red circle on a blue background',
  })
  prompt: string;

  @ModelField('Name of an installed model: sd1.5, sd2.1, shapes, or another that GET /v1/models lists.') model?: string;

  @NumberField({
    description: 'How many pictures.',
    integer: true,
    ...limits.numGenerations,
    optional: true,
    default: defaults.numGenerations,
  })
  n?: number;

  @TextField({
    description:
      'Width and height in pixels: 512x512, 512x768 or 768x512, and with another model than sd1.5 and sd2.1 those of ' +
      'its native size, such as 1024x1024, 832x1216 and 1216x832 of Stable Diffusion XL. auto is the square one.',
    maxLength: 16,
    pattern: /^(auto|[1-9][0-9]{1,3}x[1-9][0-9]{1,3})$/,
    patternMessage: 'must be auto or a width and a height in pixels, such as 512x512',
    optional: true,
    default: 'auto',
    example: '512x512',
  })
  size?: string;

  @EnumField({
    description: 'Whether the answer has URLs of the pictures, or the pictures themselves in base64.',
    values: imageResponseFormats,
    name: 'ImageResponseFormat',
    optional: true,
    default: 'url',
  })
  response_format?: (typeof imageResponseFormats)[number];

  @TextField({
    description: 'Who the pictures are for; kept in the metadata of the Generation.',
    maxLength: limits.nameLength,
    optional: true,
  })
  user?: string;
}

/** One picture, in the shape of OpenAI's API. */
export class ImageDto {
  @Text('With `response_format: url`.', { format: 'uri', required: false }) url?: string;
  @Text('With `response_format: b64_json`.', { required: false, example: 'iVBORw0KGgo=' }) b64_json?: string;
}

/** Pictures, in the shape of OpenAI's API. */
export class ImagesDto {
  @Integer('When they were finished, in seconds since the epoch.', { example: 1795166493 }) created: number;
  @Parts(ImageDto) data: ImageDto[];
}
