import { plainToInstance } from 'class-transformer';
import { ValidateBy, validateSync } from 'class-validator';
import type { ErrorCode } from '../errors/error-table';
import type { FieldProblems } from '../errors/field-problems';

type Dto = new () => object;

/** What a decorator says about the properties of DTOs. */
export class Declarations<T> {
  /** By the prototype of the declaring class. */
  private readonly own = new WeakMap<object, Map<string, T>>();
  private readonly known = new WeakMap<Dto, ReadonlyMap<string, T>>();

  add(prototype: object, name: PropertyKey, declaration: T): void {
    const declarations = this.own.get(prototype) ?? new Map<string, T>();
    this.own.set(prototype, declarations.set(String(name), declaration));
  }

  /**
   * Fields of a DTO by name, in order of declaration: first those of the class that it extends.
   * @throws Error if there are none
   */
  of(dto: Dto): ReadonlyMap<string, T> {
    const known = this.known.get(dto);
    if (known) return known;
    const all: (readonly [string, T])[] = [];
    for (
      let prototype = dto.prototype as object | null;
      prototype;
      prototype = Object.getPrototypeOf(prototype) as object | null
    )
      all.unshift(...(this.own.get(prototype) ?? []));
    if (all.length === 0)
      throw new Error(`${dto.name} is no DTO: none of its properties has a decorator that says so.`);
    const declarations = new Map(all);
    this.known.set(dto, declarations);
    return declarations;
  }
}

const counts = ['num_images', 'num_outputs', 'num_images_per_prompt', 'number_of_images', 'batch_size', 'samples'];

/** Names that other services, or other bodies here, have for our fields; by our name. */
const namesElsewhere: Readonly<Record<string, readonly string[]>> = {
  prompt: ['text', 'text_prompt', 'text_prompts', 'inputs', 'caption'],
  negative_prompt: ['negative', 'negative_text', 'neg_prompt'],
  num_generations: ['n', ...counts],
  n: ['num_generations', ...counts],
  cfg: ['guidance_scale', 'cfg_scale', 'guidance'],
  steps: [
    ...['num_inference_steps', 'inference_steps', 'num_steps', 'ddim_steps', 'sampling_steps'],
    ...['max_train_steps', 'train_steps', 'training_steps', 'num_train_steps', 'iterations'],
  ],
  seed: ['random_seed', 'noise_seed'],
  aspect_ratio: ['size', 'image_size', 'ar', 'dimensions', 'orientation'],
  width: ['w', 'image_width'],
  height: ['h', 'image_height'],
  outpaint: ['outpainting', 'uncrop', 'extend', 'expand_image'],
  webhook: ['webhook_url', 'callback', 'callback_url', 'notify_url', 'webhook_endpoint'],
  model: ['model_id', 'model_name', 'version', 'engine', 'engine_id', 'base_model', 'checkpoint'],
  scheduler: ['sampler', 'sampler_name', 'sampler_index', 'sampling_method'],
  high_resolution: ['upscale', 'super_resolution', 'hires_fix', 'enable_hr'],
  output_format: ['format', 'image_format', 'output_type'],
  user: ['end_user', 'user_id', 'customer', 'customer_id', 'safety_identifier'],
  metadata: ['extra', 'custom_data', 'user_data'],
  title: ['display_name', 'label'],
  token: ['trigger_word', 'trigger_phrase', 'token_string', 'instance_token', 'identifier'],
  name: ['class_name', 'class_noun', 'title'],
  images_url: [
    ...['image_urls', 'images', 'images_data_url', 'image_data_url', 'input_images', 'training_images'],
    ...['instance_images', 'instance_data', 'instance_data_dir', 'train_data'],
  ],
  captions: ['image_captions', 'training_captions'],
  prompts: ['prompts_attributes'],
  scopes: ['scope'],
  image: ['init_image', 'init_images', 'image_url', 'input_image', 'source_image', 'start_image', 'control_image'],
  references: ['reference_images', 'reference_image_urls', 'image_reference', 'image_urls', 'images', 'input_images'],
  strength: ['prompt_strength', 'denoising_strength', 'image_strength', 'img2img_strength'],
  mask: ['mask_image', 'mask_url', 'inpaint_mask', 'mask_source'],
  control: ['controlnet', 'controlnets', 'control_net', 'controlnet_units', 'alwayson_scripts', 'control_image'],
  finetunes: ['lora', 'loras', 'lora_weights', 'extra_lora', 'lora_url', 'embeddings'],
  scale: ['weight', 'conditioning_scale', 'controlnet_conditioning_scale', 'control_weight', 'lora_scale'],
  start: ['guidance_start', 'control_guidance_start', 'start_percentage'],
  end: ['guidance_end', 'control_guidance_end', 'end_percentage'],
  preprocess: ['module', 'preprocessor', 'processor'],
};

/** What is otherwise about a value that is sent under another name. */
const inPixels = ', or "width" and "height" where it is in pixels';
const otherwise: Readonly<Record<string, string>> = {
  size: inPixels,
  image_size: inPixels,
  dimensions: inPixels,
  guidance_scale: ', where 1 is no guidance; for Z-Image, whose guidance_scale counts from 0, add 1',
};

/** What to do instead of sending a field that a body does not have, by our name of it. */
export type Advice = ReadonlyMap<string, string>;

const ourNames = new Map<string, string[]>();
for (const [ours, elsewhere] of Object.entries(namesElsewhere))
  for (const name of elsewhere) ourNames.set(name, [...(ourNames.get(name) ?? []), ours]);

/**
 * The message for an unknown field: what it is called here, if it is another name for one; or else what to do instead.
 * @param known fields of the object.
 */
export function unknownField(name: string, known: ReadonlyMap<string, unknown>, advice?: Advice): string {
  if (name === 'input' && known.has('prompt'))
    return 'is not a known field; what it holds is sent beside it here, not in it';
  const names = ourNames.get(name.toLowerCase()) ?? [];
  const ours = names.find((each) => known.has(each));
  if (ours) return `is not a known field; it is called "${ours}" here${otherwise[name.toLowerCase()] ?? ''}`;
  const advised = [name, ...names].find((each) => advice?.has(each));
  return advised ? `is not a known field; ${advice?.get(advised)}` : 'is not a known field';
}

/** Says what is wrong with a value, if anything. The text has no subject, because the pointer precedes it. */
export type Check = (value: unknown) => string | undefined;

/**
 * How a field of a request body is read: class-validator applies `check` to small values (`isSmall`); a value whose
 * size the caller decides is read by `read` alone.
 */
export type FieldRule = {
  /** It may be left out, or be null, which means the same. */
  optional: boolean;
  /** The error code when it is missing, null or empty, if it has one of its own. */
  missingCode?: ErrorCode<'invalid'>;
} & (
  | { isSmall: (value: unknown) => boolean; check: Check }
  | {
      /** Checks sizes before contents, and reads no more of the value than its limits allow. */
      read: (value: unknown, pointer: string, problems: FieldProblems) => unknown;
    }
);

/** For a text without any visible character. */
export const emptyMessage = 'must not be empty';

const rulesOfDtos = new Declarations<FieldRule>();

/** Stores the rule of a field with the class that declares it, and registers its check with class-validator. */
export function Field(rule: FieldRule): PropertyDecorator {
  return (prototype, name) => {
    rulesOfDtos.add(prototype, name, rule);
    if (!('check' in rule)) return;
    const { check } = rule;
    const validator = {
      validate: (value: unknown) => check(value) === undefined,
      defaultMessage: (args?: { value: unknown }) => check(args?.value) ?? '',
    };
    ValidateBy({ name: 'field', validator })(prototype, name);
  };
}

const adviceOf = new WeakMap<object, Advice>();

/** Advice for fields that a body of the class does not have, by our names of them. */
export function Without(advice: Readonly<Record<string, string>>): ClassDecorator {
  return ({ prototype }) => void adviceOf.set(prototype as object, new Map(Object.entries(advice)));
}

/**
 * Reads an object of a body as its DTO, which gets only the known fields that were sent. Each key is looked up once and
 * the values of unknown keys are ignored, so that the time does not depend on them. class-transformer and
 * class-validator, which are slow for every object and key, see only known, small fields.
 * A field that is null counts as left out.
 * @returns undefined for a value that is no object; if there are problems, the result is meaningless.
 */
export function readObject<T extends object>(
  dto: new () => T,
  value: unknown,
  pointer: string,
  problems: FieldProblems,
): T | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    problems.add(pointer, undefined, 'must be a JSON object');
    return undefined;
  }
  const rules = rulesOfDtos.of(dto);
  const sent = value as Record<string, unknown>;
  const small: Record<string, unknown> = {};
  const own: Record<string, unknown> = {};
  for (const [name, rule] of rules) {
    const field = Object.hasOwn(sent, name) ? sent[name] : undefined;
    if (field === undefined || field === null) {
      if (!rule.optional) problems.add(pointer, name, 'is required', rule.missingCode);
    } else if ('read' in rule) own[name] = rule.read(field, `${pointer}/${name}`, problems);
    else if (rule.isSmall(field)) small[name] = field;
    else problems.add(pointer, name, rule.check(field) ?? 'is not valid');
  }
  const instance = plainToInstance(dto, small);
  for (const { property, constraints = {} } of validateSync(instance, { skipMissingProperties: true })) {
    const message = Object.values(constraints)[0] ?? 'is not valid';
    problems.add(pointer, property, message, message === emptyMessage ? rules.get(property)?.missingCode : undefined);
  }
  const advice = adviceOf.get(dto.prototype as object);
  for (const name of Object.keys(sent))
    if (!rules.has(name)) problems.add(pointer, name, unknownField(name, rules, advice));
  return Object.assign(instance, own);
}
