/** Values for training of a model's `darkroom.json`, in its words; absent ones are the usual ones. */
export interface TrainingDefaults {
  steps?: number;
  rank?: number;
  layers?: 'attention' | 'all';
  text_encoders?: boolean;
  kind?: 'lora' | 'textual_inversion';
  /** Embeddings of a textual inversion. */
  vectors?: number;
  learning_rate?: number;
  batch?: number;
  /** Edge in pixels of square pictures. */
  size?: number;
  /** Whether a picture may be shown as in a mirror. */
  flips?: boolean;
  /** Texts of pictures that the model draws itself, to be shown beside those it is trained with. */
  prior_prompts?: string[];
  prior_share?: number;
  /** Bound of the loss's weight by signal and noise; 0 is none. */
  min_snr_gamma?: number;
}

/** Rules of a value, which may be of any type. */
export const isInteger =
  (min: number, max: number, multipleOf = 1) =>
  (value: unknown): boolean =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max && Number(value) % multipleOf === 0;
export const isOneOf =
  (...values: unknown[]) =>
  (value: unknown): boolean =>
    values.includes(value);
const isFrom0To =
  (max: number) =>
  (value: unknown): boolean =>
    typeof value === 'number' && value >= 0 && value <= max;

/** Each prior picture is drawn before the first step. */
const [mostPrompts, longestPrompt] = [200, 500];

const isPrompts = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length <= mostPrompts &&
  value.every((text) => typeof text === 'string' && text.length <= longestPrompt);

/** Whether a value is accepted, and the end of the sentence if it is not. */
const rules: Record<keyof TrainingDefaults, [(value: unknown) => boolean, string]> = {
  steps: [isInteger(50, 5000), 'steps that are no integer from 50 to 5000'],
  rank: [isInteger(1, 128), 'a rank that is no integer from 1 to 128'],
  layers: [isOneOf('attention', 'all'), 'layers that are neither "attention" nor "all"'],
  text_encoders: [isOneOf(true, false), 'text_encoders that are neither true nor false'],
  kind: [isOneOf('lora', 'textual_inversion'), 'a kind that is neither "lora" nor "textual_inversion"'],
  vectors: [isInteger(1, 32), 'vectors that are no integer from 1 to 32'],
  learning_rate: [
    (value) => isFrom0To(1)(value) && value !== 0,
    'a learning_rate that is no number above 0 and up to 1',
  ],
  batch: [isInteger(1, 64), 'a batch that is no integer from 1 to 64'],
  size: [isInteger(256, 2048, 64), 'a size that is no multiple of 64 from 256 to 2048'],
  flips: [isOneOf(true, false), 'flips that are neither true nor false'],
  prior_prompts: [isPrompts, `prior_prompts that are no list of up to ${mostPrompts} texts`],
  prior_share: [isFrom0To(1), 'a prior_share that is no number from 0 to 1'],
  min_snr_gamma: [isFrom0To(100), 'a min_snr_gamma that is no number from 0 to 100'],
};

/** Faults of a model's values for training, each as the end of a sentence. */
export function problemsOfTraining(json: unknown): string[] {
  if (json === undefined) return [];
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    return ['has a "training" that is no object of values'];
  const problems = Object.keys(json).some((key) => !Object.hasOwn(rules, key))
    ? [`has a "training" with other keys than ${Object.keys(rules).join(', ')}`]
    : [];
  for (const [key, [isRight, sentence]] of Object.entries(rules)) {
    const value = (json as Record<string, unknown>)[key];
    if (value !== undefined && !isRight(value)) problems.push(`has a "training" with ${sentence}`);
  }
  return problems;
}
