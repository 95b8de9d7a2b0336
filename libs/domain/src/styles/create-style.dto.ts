import { limits } from '../common/limits';
import { NumberField, TextField } from '../fields/fields';

/** One element of the body of `POST /v1/prompts/collections/:id/styles`. */
export class CreateStyleDto {
  @TextField({ description: 'Identifier of the Prompt it is made from.', maxLength: limits.nameLength })
  id: string;

  @TextField({ description: 'Name of the Style.', maxLength: limits.nameLength, example: 'Neon night' })
  name: string;

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
