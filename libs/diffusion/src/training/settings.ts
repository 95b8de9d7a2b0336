import type { ModelFolder } from '../families/model-folder';

/** How an adapter is trained. The same settings, pictures and model give the same weights, on one kind of device. */
export interface TrainingSettings {
  steps: number;
  /** All that is random follows from it and from the number of the step. */
  seed: number;
  rank: number;
  /** Which layers of the U-Net are trained: those of attention, or all that a transformer or residual block has. */
  layers: 'attention' | 'all';
  /** Whether layers of the text encoders are trained too, those of attention. Absent: they are not. */
  textEncoders?: boolean;
  /** Absent: LoRA. A textual inversion leaves all layers as they are, and trains the embeddings of a word. */
  kind?: 'lora' | 'textual_inversion';
  /** Of a textual inversion: how many embeddings stand for the word. */
  vectors?: number;
  /** Of a textual inversion: the word as captions have it, and the one with whose meaning it begins. */
  token?: string;
  initializerToken?: string;
  /** Highest rate of AdamW: it rises to this, and then falls with a cosine. */
  learningRate: number;
  /** Steps in which the rate rises. */
  warmupSteps: number;
  /** Pictures of a step. */
  batch: number;
  /** Edge in pixels of square pictures. */
  size: number;
  /** Whether a picture may be shown as in a mirror, half of the times. Wrong for writing, and for left and right. */
  flips: boolean;
  /** How often a picture is shown without its caption. */
  captionDropout: number;
  /** Bound of the loss's weight by signal and noise; 0 is none. Source: Hang et al. (2023), "min-SNR". */
  minSnrGamma: number;
  /** Share of noise that all positions of a channel have in common; 0 is none. */
  offsetNoise: number;
  /**
   * Texts of pictures that the base draws itself. It goes on predicting what it predicted then, so it does not forget
   * them.
   */
  priorPrompts: readonly string[];
  /** How often a row of such a picture is shown in place of a given one. */
  priorShare: number;
  /**
   * Values of a step that are kept until its gradients are there: all of them, or the inputs of each block, from which
   * the others are computed again. That takes a third longer, and far less memory.
   */
  form: TrainingForm;
}

export type TrainingForm = 'plain' | 'recomputed';

/** Steps for each picture, and their bounds, where neither caller nor model says how many. */
const stepsOfPicture = 100;
const [fewestSteps, mostSteps] = [500, 3000];

/** The settings of a training: what the caller says, then the model, then what is usual. */
export function trainingSettings(
  { nativeSize, defaults }: Pick<ModelFolder, 'nativeSize' | 'defaults'>,
  pictures: number,
  given: Partial<TrainingSettings>,
): TrainingSettings {
  const { steps: usual, rank, layers, batch, size, flips, ...named } = defaults.training ?? {};
  const ofModel: Partial<TrainingSettings> = {
    ...{ steps: usual, rank, layers, batch, size, flips, learningRate: named.learning_rate },
    ...{ textEncoders: named.text_encoders, kind: named.kind, vectors: named.vectors },
    ...{ priorPrompts: named.prior_prompts, priorShare: named.prior_share, minSnrGamma: named.min_snr_gamma },
  };
  const said = { ...defined(ofModel), ...defined(given) };
  const { kind, textEncoders, token = 'zwx', initializerToken = token, vectors = 4, ...common } = said;
  const isWord = kind === 'textual_inversion';
  const steps = said.steps ?? Math.min(mostSteps, Math.max(fewestSteps, stepsOfPicture * pictures));
  return {
    steps,
    seed: 0,
    rank: 8,
    layers: 'attention',
    learningRate: isWord ? 5e-3 : 1e-4,
    warmupSteps: Math.min(50, Math.ceil(steps / 10)),
    batch: 1,
    size: Math.min(nativeSize, 512),
    flips: false,
    captionDropout: 0.05,
    minSnrGamma: 5,
    offsetNoise: 0,
    priorPrompts: [],
    priorShare: 0.3,
    form: 'plain',
    ...common,
    // A text without the word has no gradients: it would be a step for nothing.
    ...(isWord && { kind, vectors, token, initializerToken, captionDropout: 0, priorPrompts: [] }),
    ...(!isWord && textEncoders && { textEncoders }),
  };
}

/** Whether the text encoders are a part of what is trained, so that they take token ids in each step. */
export const takesTokens = ({ kind, textEncoders }: Pick<TrainingSettings, 'kind' | 'textEncoders'>): boolean =>
  kind === 'textual_inversion' || textEncoders === true;

const defined = <T extends object>(values: T): T =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;
