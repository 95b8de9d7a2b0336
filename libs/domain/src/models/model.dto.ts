import { type SigningState, signingStates } from '../inference-workers/inference-worker';
import { type SchedulerName, schedulerNames } from '../common/schedulers';
import {
  Decimal,
  Integer,
  IntegerOrNull,
  Part,
  Parts,
  Text,
  TextByName,
  TextOrNull,
  Texts,
  Word,
  WordOrNull,
} from '../fields/fields-of-answers';

/** Settings that a model is drawn with where a request does not say. */
export class ModelDefaultsDto {
  @Decimal("From the model's darkroom.json, else what its family is drawn with: 7.5 for Stable Diffusion.", {
    example: 7.5,
  })
  cfg: number;

  @Integer("From the model's darkroom.json, else what its family is drawn with: 30 for Stable Diffusion.", {
    example: 30,
  })
  steps: number;

  @WordOrNull(
    schedulerNames,
    'Scheduler',
    "From the model's darkroom.json; null for the model's own, which `scheduler` of the model names.",
  )
  scheduler: SchedulerName | null;
}

const modelKinds = ['text-to-image', 'inpainting', 'instruct-pix2pix', 'control', 'safety'] as const;

/** An installed model. */
export class ModelDto {
  @Text('', { example: 'sd1.5' }) name: string;
  @TextOrNull("diffusers' name of its own sampling method.", { example: 'PNDMScheduler' }) scheduler: string | null;

  @TextOrNull(
    'Short name of its kind of model: `sd1`, `sd2`, `sdxl`, `flux2`, `z-image` or `ernie-image`; `safety` for a safety checker; null for one that cannot be read.',
    { example: 'sd1' },
  )
  family: string | null;

  @TextOrNull('The same in words.', { example: 'Stable Diffusion 1.x' }) family_title: string | null;

  @WordOrNull(
    modelKinds,
    'ModelKind',
    'What it draws from: a text, or a picture too: `image` and `mask` for inpainting, `image` for instruct-pix2pix. A `control` guides another model, a `safety` checker looks at pictures, and neither draws; null for a model that cannot be read.',
  )
  kind: (typeof modelKinds)[number] | null;

  @IntegerOrNull('Edge in pixels of the square pictures it was trained on.', { example: 512 })
  native_size: number | null;

  @IntegerOrNull('Of which `width` and `height` are multiples; null for what does not draw.', { example: 8 })
  size_multiple: number | null;

  @IntegerOrNull('Pixels of a picture at most; null for what does not draw.', { example: 1_048_576 })
  max_pixels: number | null;

  @TextOrNull(
    'What running workers draw it on: cpu, webgpu or cuda:<n>, several with commas; null while none is up that can.',
    { example: 'cuda:0' },
  )
  device: string | null;

  @TextOrNull(
    'First 12 digits of the content hash of its files, as in `served_by`; null for a model that cannot be read.',
  )
  hash: string | null;

  @TextOrNull('How its weights are stored: float32, float16, bfloat16, float8 or int8.', { example: 'int8' })
  precision: string | null;

  @Integer() bytes: number;
  @Part(ModelDefaultsDto) defaults: ModelDefaultsDto;
  @Texts('Values of `scheduler` that it can be drawn with.') schedulers: string[];

  @TextByName(
    'What it refuses, each with the reason: the fields `negative_prompt`, `prompt_weighting`, `control` and `references` of a request, `textual_inversion` as weights of a Fine-Tune, and `training`.',
    {
      example: { control: 'This model takes no ControlNets.' },
    },
  )
  cannot: Readonly<Record<string, string>>;

  @Texts('Names of models that are not installed and that it draws for.') stands_in_for: string[];

  @Word(
    signingStates,
    'SigningState',
    'Whether its pictures get Content Credentials; `partly`: those of some workers; `failing`: they should, and cannot be signed at the moment.',
  )
  credentials: SigningState;

  @TextOrNull(
    'Why it cannot be drawn with, or why it is refused where a request names no scheduler; null where nothing is known against it.',
  )
  problem: string | null;
}

/** A model as OpenAI's API has it, with all that ours says beside it. */
export class OpenaiModelDto extends ModelDto {
  @Text('The name that was asked for, which may be an alias.', { example: 'sd1.5' }) id: string;
  @Word(['model'], 'ModelObject') object: 'model';
  @Integer('When it was installed, in seconds since the epoch.', { example: 1795166493 }) created: number;
  @Text('', { example: 'darkroom' }) owned_by: string;
}

/** The list of models as OpenAI's API has it. */
export class OpenaiModelsDto {
  @Word(['list'], 'ListObject') object: 'list';
  @Parts(OpenaiModelDto) data: OpenaiModelDto[];
}
