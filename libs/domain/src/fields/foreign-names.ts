const counts = ['num_images', 'num_outputs', 'num_images_per_prompt', 'number_of_images', 'batch_size', 'samples'];

/** What other services, or other bodies of this one, call our fields, by our name. */
const namesElsewhere: Readonly<Record<string, readonly string[]>> = {
  prompt: ['text', 'text_prompt', 'text_prompts', 'inputs', 'caption'],
  negative_prompt: ['negative', 'negative_text', 'neg_prompt'],
  num_generations: ['n', ...counts],
  n: ['num_generations', ...counts],
  cfg: ['guidance_scale', 'cfg_scale', 'guidance', 'prompt_strength'],
  steps: ['num_inference_steps', 'inference_steps', 'num_steps', 'ddim_steps', 'sampling_steps'],
  seed: ['random_seed', 'noise_seed'],
  aspect_ratio: ['size', 'width', 'height', 'image_size', 'ar', 'dimensions', 'orientation'],
  webhook: ['webhook_url', 'callback', 'callback_url', 'notify_url', 'webhook_endpoint'],
  model: ['model_id', 'model_name', 'version', 'engine', 'engine_id', 'base_model', 'checkpoint'],
  scheduler: ['sampler', 'sampler_name', 'sampler_index', 'sampling_method'],
  high_resolution: ['upscale', 'super_resolution', 'hires_fix', 'enable_hr'],
  output_format: ['format', 'image_format', 'output_type'],
  metadata: ['extra', 'custom_data', 'user_data'],
  title: ['display_name', 'label'],
  token: ['trigger_word', 'instance_token', 'identifier'],
  name: ['class_name', 'class_noun', 'title'],
  images_url: ['image_urls', 'images', 'images_data_url', 'input_images'],
  scopes: ['scope'],
};

/** What to do instead of sending a field that a body does not have, by our name of it. */
export type Advice = ReadonlyMap<string, string>;

const ourNames = new Map<string, string[]>();
for (const [ours, elsewhere] of Object.entries(namesElsewhere))
  for (const name of elsewhere) ourNames.set(name, [...(ourNames.get(name) ?? []), ours]);

/**
 * What to say of an unknown field: what it is called here, if it is another name for one; or else what to do instead.
 * @param known fields of the object.
 */
export function unknownField(name: string, known: ReadonlyMap<string, unknown>, advice?: Advice): string {
  if (name === 'input' && known.has('prompt'))
    return 'is not a known field; what it holds is sent beside it here, not in it';
  const names = ourNames.get(name.toLowerCase()) ?? [];
  const ours = names.find((each) => known.has(each));
  if (ours) return `is not a known field; it is called "${ours}" here`;
  const advised = [name, ...names].find((each) => advice?.has(each));
  return advised ? `is not a known field; ${advice?.get(advised)}` : 'is not a known field';
}
