import { limits } from '../common/limits';
import { NumberField, TextField } from '../fields/fields';
import { Id, Text, TextOrNull } from '../fields/fields-of-answers';

/** One element of the body of `POST /v1/prompts/collections/:id/styles`. */
export class CreateStyleDto {
  @TextField({ description: 'Identifier of the Prompt it is made from.', maxLength: limits.nameLength }) id: string;
  @TextField({ description: 'Name of the Style.', maxLength: limits.nameLength, example: 'Neon night' }) name: string;
  @NumberField({ description: "Guidance scale; the Prompt's when left out.", ...limits.cfg, optional: true })
  cfg?: number;

  @NumberField({
    description: "Denoising steps; the Prompt's when left out.",
    integer: true,
    ...limits.steps,
    optional: true,
  })
  steps?: number;
}

/** A Style as every route shows it. */
export class StyleDto {
  @Id() id: string;
  @Text() name: string;

  @TextOrNull('URL of the first picture of the Prompt it was made from, 256 x 256 pixels; null until there is one.', {
    format: 'uri',
  })
  thumbnail: string | null;
}
