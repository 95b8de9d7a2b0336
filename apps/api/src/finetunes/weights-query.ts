import { defaults, limits } from '@app/domain';
import { QueryParameter } from '@app/domain/http';
import { inexactness } from '../defence/exact-json';

const { min, max } = limits.weightsScale;

/** The query of a download of weights. */
export class WeightsDialectDto {
  @QueryParameter({
    description:
      'The names of its layers: without it those of diffusers, with `comfy` those that ComfyUI reads. Only for what was trained here.',
    schema: { type: 'string', enum: ['comfy'] },
    read: (sent, refuse) => (sent === 'comfy' ? sent : refuse('must be comfy, or be left out')),
  })
  dialect?: 'comfy';
}

/** The query of an upload of weights. */
export class WeightsQueryDto {
  @QueryParameter({
    description: 'By how much a LoRA changes the model. An upload without it sets 1, whatever it was before.',
    schema: { type: 'number', minimum: min, maximum: max, default: defaults.weightsScale },
    read: (sent, refuse) => {
      const value = /^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(sent) ? Number(sent) : NaN;
      if (!(value >= min && value <= max)) return refuse(`must be a number from ${min} to ${max}`);
      const problem = inexactness(sent);
      return problem === undefined ? value : refuse(problem);
    },
  })
  scale: number = defaults.weightsScale;
}
