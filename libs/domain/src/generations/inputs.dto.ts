import { limits } from '../common/limits';
import { Decimal, Id } from '../fields/fields-of-answers';
import { NumberField, TextField } from '../fields/fields';
import type { UsedFinetune } from '../tasks/drawing-inputs';

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

/** A Fine-Tune that a Generation is drawn with. */
export class UsedFinetuneDto implements UsedFinetune {
  @Id() id: string;
  @Decimal('By how much its LoRA changes the model.') scale: number;
}
