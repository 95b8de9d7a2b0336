import { defaults, limits } from '../common/limits';
import { schedulerNames, schedulerOfClass } from '../common/schedulers';
import { outputFormats } from '../tasks/drawing';
import { UrlArrayField } from './fields-of-arrays';
import { AspectRatioField, BooleanField, EnumField, MetadataField, NumberField, TextField, UrlField } from './fields';

// Fields that several requests have: what they accept, their default and what is said of them are the same for all.

/** The text that guidance leads away from. */
export const NegativePromptField = () =>
  TextField({
    description:
      'What the picture must not show. It counts with a `cfg` of more than 1; a model that was distilled to draw without guidance refuses it.',
    minLength: 0,
    maxLength: limits.promptLength,
    optional: true,
  });

/** A model by its name, whether it is installed or not. */
export const ModelField = (description: string) =>
  TextField({
    description,
    maxLength: limits.modelNameLength,
    pattern: /^[a-z0-9][a-z0-9._-]*$/,
    patternMessage: 'must be the name of a model in lower case, such as sd1.5',
    optional: true,
    default: defaults.model,
  });

/** How closely the picture follows the prompt. */
export const CfgField = () =>
  NumberField({
    description:
      "Guidance scale: how closely the picture follows the prompt; 1 is none. The model's own when left out, which `defaults` in `GET /v1/models` says.",
    ...limits.cfg,
    note: '; 1 is no guidance',
    optional: true,
    example: 7.5,
  });

/** How many steps the picture is drawn in. */
export const StepsField = () =>
  NumberField({
    description:
      "Denoising steps. The model's own number when left out, which `defaults` in `GET /v1/models` says: 1 to 50.",
    integer: true,
    ...limits.steps,
    optional: true,
    example: 30,
  });

/** @param whose the picture that is drawn with it, as in "Seed of the picture". */
export const SeedField = (whose: string) =>
  NumberField({
    description: `Seed of ${whose}; random when left out.`,
    integer: true,
    min: 0,
    max: limits.seed,
    optional: true,
  });

/** How many pictures are drawn. */
export const NumGenerationsField = () =>
  NumberField({
    description: 'How many pictures; picture i has the seed `seed + i`.',
    integer: true,
    ...limits.numGenerations,
    optional: true,
    default: defaults.numGenerations,
  });

/** The sampling method. */
export const SchedulerField = () =>
  EnumField({
    description: "Sampling method; the model's own when left out.",
    values: schedulerNames,
    elsewhere: schedulerOfClass,
    name: 'Scheduler',
    optional: true,
  });

/** In which format pictures are stored. */
export const OutputFormatField = () =>
  EnumField({
    description: 'File format of the pictures.',
    values: outputFormats,
    name: 'OutputFormat',
    optional: true,
    default: defaults.outputFormat,
  });

/** Whether brackets in the texts weigh words. */
export const PromptWeightingField = () =>
  BooleanField({
    description:
      'Whether `(word:1.3)` and `[word]` in the texts weigh words, and `BREAK` ends a chunk of 75 tokens. Not every model can; `cannot` in `GET /v1/models` says so.',
    optional: true,
    default: defaults.promptWeighting,
  });

/** Whether the picture is enlarged. */
export const HighResolutionField = () =>
  BooleanField({ description: 'Long edge of exactly 4096 pixels.', optional: true, default: defaults.highResolution });

/**
 * @param whose shape it is, as in "Shape of the picture"; `asSent`: the DTO has the word or the array that was sent.
 */
export const ShapeField = (whose: string, { asSent = false } = {}) =>
  AspectRatioField({
    asSent,
    description: `Shape of ${whose}: square 512x512, portrait 512x768, landscape 768x512, of that area where the model has another native size; or a ratio from 1:4 to 4:1 of whole numbers to 64, such as 16:9 or 21:9, at the model's area. Not with \`width\` and \`height\`.`,
    optional: true,
    default: defaults.aspectRatio,
  });

/** One edge in pixels. */
const EdgeField = (description: string, example: number) =>
  NumberField({ description, integer: true, ...limits.pictureEdge, optional: true, example });

/** How wide the picture is. */
export const WidthField = () =>
  EdgeField(
    'In pixels, with `height` and in place of `aspect_ratio`: a multiple of 16, or of 8 with Stable Diffusion. Both make at most the `max_pixels` that `GET /v1/models` says of the model.',
    768,
  );

/** How high the picture is. */
export const HeightField = () => EdgeField('In pixels, with `width`.', 432);

/** @param what is posted there, as in "Where the Prompt is posted". */
export const WebhookField = (what: string) =>
  UrlField({
    description: `Where ${what} is posted when it reaches a terminated status.`,
    maxLength: limits.webhookLength,
    optional: true,
    example: 'https://example.com/hooks/darkroom',
  });

/** A picture by its URL. */
export const PictureField = (description: string, { optional = true } = {}) =>
  UrlField({
    description: `${description}: the URL of an upload, of a picture of your records, or of one elsewhere.`,
    maxLength: limits.webhookLength,
    ...(optional && { optional }),
    example: 'https://example.com/sketch.png',
  });

/** The picture that drawing starts from. */
export const ImageField = () =>
  PictureField('A picture to draw from, cropped around its middle to the shape; its own when left out');

/** How much of a picture is drawn anew. */
export const StrengthField = () =>
  NumberField({
    description:
      'The share of the steps that is drawn of `image`: little changes little, and 1 draws from noise alone.',
    ...limits.strength,
    optional: true,
    default: defaults.strength,
  });

/** The part of a picture that is drawn anew. */
export const MaskField = () => PictureField('What of `image` is repainted, in white; what is black is kept');

/** Pictures that the model looks at. */
export const ReferencesField = () =>
  UrlArrayField({
    description:
      'Pictures that the model looks at, in this order, each in its own shape and scaled down to a megapixel: "put the first beside the second". Where neither `aspect_ratio` nor `image` says the shape, it is the nearest to that of the first. Each is the URL of an upload, of a picture of your records, or of one elsewhere. For FLUX.2, and not with `mask`; `cannot` in `GET /v1/models` says which models take none.',
    documentedMin: 0,
    max: limits.usedReferences,
    maxLength: limits.webhookLength,
    optional: true,
    example: ['https://example.com/cat.png', 'https://example.com/hat.png'],
  });

/** Data that a caller keeps with a record. */
export const OwnMetadataField = () =>
  MetadataField({
    description: 'A JSON value of your own, returned as it was sent: an object, a text, a number.',
    optional: true,
    example: { order: 42 },
  });

/** Whose the pictures are. */
export const UserField = () =>
  TextField({
    description:
      'Whose the pictures are, in your own words: a name or an id of your customer. `GET /v1/usage` sums by it.',
    maxLength: limits.userLength,
    optional: true,
    example: 'customer-42',
  });
