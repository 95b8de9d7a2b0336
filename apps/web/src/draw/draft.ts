import { computed } from '@preact/signals';
import type { Drawing } from '../drawings/drawing';
import { askable, serviceDefaults } from '../drawings/service-rules';
import { areFinetunesLoaded, finetuneOf } from '../finetunes/finetunes';
import { choiceOf, modelChoices } from '../models/models';
import type { components } from '../service/client';
import { sessionSignal } from '../session/session';
import type { Mask } from '../pictures/mask';
import { type Control, controlOf, maybePicture, type SentPicture, sentPicture } from '../pictures/sent-picture';
import { seemsToLack } from './name-hint';

export type Scheduler = components['schemas']['Scheduler'];
/** Where a picture stands in a larger one, in pixels; true is its middle. */
export type Outpaint = true | { x: number; y: number };
type UsedFinetune = components['schemas']['UsedFinetune'];

/** Settings of a picture; undefined is the model's own default. */
export interface Settings {
  prompt: string;
  negative_prompt: string;
  /** One of the three words or a ratio; null where `width` and `height` say the size. */
  aspect_ratio: string | null;
  width?: number;
  height?: number;
  steps?: number;
  cfg?: number;
  scheduler?: Scheduler;
  seed: number;
  num_generations: number;
  high_resolution: boolean;
  /** Whether brackets in the prompts are weights. */
  prompt_weighting: boolean;
  /** A model; undefined is the first that is installed. */
  model?: string;
  image?: SentPicture | undefined;
  /** How much of that picture is redrawn, up to 1. */
  strength: number;
  /** Where that picture stands in a larger one. */
  outpaint?: Outpaint | undefined;
  /** Which parts of that picture are repainted; without it all. */
  mask?: Mask | undefined;
  control: readonly Control[];
  finetunes: readonly UsedFinetune[];
  /** Pictures that the model looks at, in their order. */
  references: readonly SentPicture[];
}

interface Draft extends Settings {
  /** Draws in place of a model. */
  finetuneId?: string;
}

export const newSeed = (): number => crypto.getRandomValues(new Uint32Array(1))[0];

export const draft = sessionSignal<Draft>(() => ({
  prompt: '',
  negative_prompt: '',
  aspect_ratio: 'square',
  seed: newSeed(),
  num_generations: 1,
  high_resolution: false,
  prompt_weighting: false,
  strength: serviceDefaults.strength,
  control: [],
  finetunes: [],
  references: [],
}));

/** Whether the next drawing keeps the seed. */
export const isSeedLocked = sessionSignal(() => false);

export function change(part: Partial<Draft>): void {
  draft.value = { ...draft.value, ...part };
}

/** The Fine-Tune that draws, if one does. */
export const drawnWith = computed(() => finetuneOf(draft.value.finetuneId));

/** The drawing Fine-Tune's id, known before the list is; undefined once it was deleted. */
export const finetuneId = computed(() => (areFinetunesLoaded.value ? drawnWith.value?.id : draft.value.finetuneId));

/** The model that draws, with its defaults. */
export const drawnBy = computed(
  () =>
    choiceOf(drawnWith.value?.model ?? draft.value.model) ??
    modelChoices.value.find(({ served }) => served.kind === 'text-to-image') ??
    modelChoices.value[0],
);

/** The values for what the draft leaves to the model; the service's own where the model has none (docs/contract.md). */
export const defaults = computed(() => {
  const { cfg = serviceDefaults.cfg, steps = serviceDefaults.steps } = drawnBy.value?.served.defaults ?? {};
  return { cfg, steps };
});

/** What the model that draws refuses, each with the reason. */
export const cannot = computed(() => drawnBy.value?.served.cannot ?? {});

/** Whether it looks at pictures. */
export const looksAtPictures = computed(() => drawnBy.value !== undefined && cannot.value.references === undefined);

/** What the form shows of the draft: without what the model that draws refuses. */
export const shown = computed<Draft>(() => {
  // What draws without guidance takes neither a negative prompt nor a scale.
  const { scheduler, cfg, ...rest } = draft.value;
  const { schedulers: own = schedulers } = drawnBy.value?.served ?? {};
  return {
    ...rest,
    ...(scheduler && own.includes(scheduler) && { scheduler }),
    ...(cannot.value.cfg === undefined && cfg !== undefined && { cfg }),
    ...(cannot.value.negative_prompt !== undefined && { negative_prompt: '' }),
    ...(cannot.value.prompt_weighting !== undefined && { prompt_weighting: false }),
    ...(cannot.value.control !== undefined && { control: [] }),
    ...((!looksAtPictures.value || rest.mask) && { references: [] }),
  };
});

/** Whether the prompt seems to lack the Fine-Tune's name, without which the service refuses it. */
export const lacksName = computed(() => {
  const name = drawnWith.value?.name;
  return name !== undefined && seemsToLack(draft.value.prompt, name);
});

/** The settings of something that was drawn. */
export function settingsOf(drawing: Drawing): Settings {
  const { prompt, aspect_ratio, steps, cfg, seed, num_generations, high_resolution, prompt_weighting, model } = drawing;
  return {
    ...{ prompt, aspect_ratio, steps, cfg, seed, high_resolution, prompt_weighting, model },
    num_generations: askable(num_generations),
    finetunes: drawing.finetunes,
    image: maybePicture(drawing.image),
    strength: drawing.strength ?? serviceDefaults.strength,
    mask: maybePicture(drawing.mask),
    ...(drawing.width !== undefined && { width: drawing.width, height: drawing.height }),
    outpaint: drawing.outpaint ?? undefined,
    control: drawing.control.map(controlOf),
    references: drawing.references.map(sentPicture),
    negative_prompt: drawing.negative_prompt ?? '',
    scheduler: (drawing.scheduler ?? undefined) as Scheduler | undefined,
  };
}

/** Fills the form with settings, including their seed. */
export function fill(settings: Draft): void {
  draft.value = settings;
  isSeedLocked.value = true;
}

/** Every name of the contract: a missing or an unknown one does not compile. */
export const schedulers = Object.keys({
  euler: 0,
  euler_a: 0,
  dpmpp_2m: 0,
  dpmpp_2m_karras: 0,
  dpmpp_2m_sde_karras: 0,
  dpmpp_2s: 0,
  dpmpp_sde: 0,
  dpm2: 0,
  dpm2_a: 0,
  ddim: 0,
  ddpm: 0,
  pndm: 0,
  lms: 0,
  heun: 0,
  unipc: 0,
  deis: 0,
  lcm: 0,
  tcd: 0,
} satisfies Record<Scheduler, 0>) as Scheduler[];
