import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { defaults, limits } from '../common/limits';
import { readObject } from '../fields/field-rule';
import { EnumField, field, NumberField, TextField } from '../fields/fields';
import { ArrayField } from '../fields/fields-of-arrays';
import { PictureField } from '../fields/fields-in-common';
import { Decimal, Id, Text, WordOrNull } from '../fields/fields-of-answers';
import { shown } from '../fields/text-rules';
import {
  type PlaceInPicture,
  type Preprocessor,
  preprocessors,
  type UsedControl,
  type UsedFinetune,
} from '../tasks/drawing-inputs';

const edgeOfPlace = { min: 0, max: limits.pictureEdge.max };

/** One element of `finetunes` in the body of `POST /v1/sd/text-to-image`. */
export class FinetuneUseDto {
  @TextField({ description: 'A Fine-Tune of your own that has weights.', maxLength: limits.nameLength })
  id: string;

  @NumberField({
    description: "By how much its LoRA changes the model; the Fine-Tune's own `scale` when left out.",
    ...limits.weightsScale,
    optional: true,
    example: 0.8,
  })
  scale?: number;
}

/** One element of `control` in a body. */
export class ControlUseDto {
  @PictureField('The map that is followed, or with `preprocess` the picture that it is made of', { optional: false })
  image: string;

  @TextField({
    description:
      'An installed ControlNet, which `GET /v1/models` lists with the kind `control`, of the family of the model.',
    maxLength: limits.modelNameLength,
    pattern: /^[a-z0-9][a-z0-9._-]*$/,
    patternMessage: 'must be the name of a model in lower case, such as canny',
    example: 'canny',
  })
  model: string;

  @NumberField({
    description: 'How strongly it is followed.',
    ...limits.controlScale,
    optional: true,
    default: defaults.control.scale,
  })
  scale?: number;

  @NumberField({
    description: 'The share of the steps after which it begins.',
    ...limits.controlSpan,
    optional: true,
    default: defaults.control.start,
  })
  start?: number;

  @NumberField({
    description: 'The share of the steps after which it ends, which is after `start`.',
    ...limits.controlSpan,
    optional: true,
    default: defaults.control.end,
  })
  end?: number;

  @EnumField({
    description: 'What makes the map of the picture; without it the picture is a finished map.',
    values: preprocessors,
    name: 'Preprocessor',
    optional: true,
  })
  preprocess?: Preprocessor | null;
}

/** What a drawing follows. */
export const ControlField = () =>
  ArrayField({
    description: 'ControlNets that are followed, with the pictures that they follow.',
    min: 0,
    max: limits.usedControls,
    element: () => ControlUseDto,
    optional: true,
  });

/** Where `image` stands in the picture that is drawn around it. */
export class PlaceInPictureDto implements PlaceInPicture {
  @NumberField({ description: 'Pixels from the left.', integer: true, ...edgeOfPlace })
  x: number;

  @NumberField({ description: 'Pixels from the top.', integer: true, ...edgeOfPlace })
  y: number;
}

const edgeSchema = { type: 'integer', minimum: edgeOfPlace.min, maximum: edgeOfPlace.max };
const placeSchema = { type: 'object', required: ['x', 'y'], properties: { x: edgeSchema, y: edgeSchema } };

/** Whether a picture is continued beyond its edges. */
export const OutpaintField = () =>
  field(
    {
      description:
        'Whether `image` stands as it is in the larger picture that `width` and `height` or `aspect_ratio` ask for, in its middle or at `x` and `y`, and what is around it is drawn. Not with `mask`; `strength` is 1 when left out.',
      optional: true,
    },
    { oneOf: [{ type: 'boolean' }, placeSchema] },
    {
      read: (value, pointer, problems) => {
        if (typeof value === 'boolean') return value;
        if (typeof value === 'object') return readObject(PlaceInPictureDto, value, pointer, problems);
        problems.add(pointer, undefined, `must be true, false or an object with x and y, got ${shown(value)}`);
        return undefined;
      },
    },
  );

/** The same in an answer. */
export const PlaceOrNull = (more: ApiPropertyOptions = { nullable: true }) =>
  ApiProperty({
    oneOf: [{ type: 'boolean', enum: [true] }, placeSchema],
    description: 'Where `image` stands in the picture that is drawn around it, as it was sent; true is its middle.',
    ...more,
  });

/** A Fine-Tune that a Generation is drawn with. */
export class UsedFinetuneDto implements UsedFinetune {
  @Id() id: string;
  @Decimal('By how much its LoRA changes the model.') scale: number;
}

/** A ControlNet that a drawing follows. */
export class UsedControlDto implements UsedControl {
  @Text('URL of its map, or of the picture that the map is made of, as it was sent.', { format: 'iri' }) image: string;
  @Text('', { example: 'canny' }) model: string;
  @Decimal() scale: number;
  @Decimal('', { example: 0 }) start: number;
  @Decimal('', { example: 1 }) end: number;
  @WordOrNull(preprocessors, 'Preprocessor') preprocess: Preprocessor | null;
}
