import { defaults, limits } from '../common/limits';
import { EnumField, NumberField, TextField } from '../fields/fields';
import { ArrayField } from '../fields/fields-of-arrays';
import { PictureField } from '../fields/fields-in-common';
import { Decimal, Id, Text, WordOrNull } from '../fields/fields-of-answers';
import { type Preprocessor, preprocessors, type UsedControl, type UsedFinetune } from '../tasks/drawing-inputs';

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
