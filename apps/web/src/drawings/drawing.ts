import type { components, Generation, Prompt } from '../service/client';
import { pictureUrl } from '../service/reach';

export type Status = components['schemas']['GenerationStatus'];
export type AspectRatio = components['schemas']['AspectRatio'];

/** A Generation or a Prompt of a Fine-Tune, as the page shows it. */
export interface Drawing {
  id: string;
  /** Of a Prompt: its Fine-Tune. */
  finetuneId?: string;
  prompt: string;
  negativePrompt: string | null;
  aspectRatio: AspectRatio;
  cfg: number;
  steps: number;
  seed: number;
  scheduler: string | null;
  highResolution: boolean;
  promptWeighting: boolean;
  /** The model that was asked for; a Prompt's is its Fine-Tune's. */
  model?: string;
  servedBy: string | null;
  count: number;
  images: string[];
  status: Status;
  error: string | null;
  createdAt: string;
}

/** How far a drawing is. */
export interface Progress {
  step: number;
  total: number;
  /** A `data:` URL. */
  preview?: string;
  /** How many are likely to be drawn before it. */
  position?: number;
  /** Whether it began anew, because what drew it before has ended. */
  isAgain?: boolean;
  /** Whether no step has come for longer than is usual. */
  isSilent?: boolean;
}

export function drawingOfGeneration(record: Generation): Drawing {
  return {
    ...fieldsInCommon(record),
    scheduler: record.scheduler,
    promptWeighting: record.prompt_weighting,
    model: record.model,
    servedBy: record.served_by,
    count: record.num_generations,
    status: record.status,
    error: record.error,
    createdAt: record.started_at,
  };
}

/** A Prompt's record has no status: pictures and an error say when it has terminated. */
export function drawingOfPrompt(record: Prompt, finetuneId: string): Drawing {
  const { images, error_message: error } = record;
  return {
    ...fieldsInCommon(record),
    finetuneId,
    scheduler: null,
    promptWeighting: false,
    servedBy: null,
    count: 1,
    status: images.length > 0 ? 'succeeded' : error !== null ? 'failed' : 'queued',
    error,
    createdAt: record.created_at,
  };
}

function fieldsInCommon(record: Generation | Prompt) {
  return {
    id: record.id,
    prompt: record.prompt,
    negativePrompt: record.negative_prompt,
    aspectRatio: record.aspect_ratio,
    cfg: record.cfg,
    steps: record.steps,
    seed: record.seed,
    highResolution: record.high_resolution,
    images: record.images.map(pictureUrl),
  };
}

/** Statuses and shapes in words. */
export const statusText: Record<Status, string> = {
  queued: 'Waiting',
  processing: 'Drawing',
  succeeded: 'Finished',
  failed: 'Failed',
  canceled: 'Canceled',
};
export const aspectText: Record<AspectRatio, string> = {
  square: 'Square',
  portrait: 'Portrait',
  landscape: 'Landscape',
};

export const isOpen = ({ status }: Pick<Drawing, 'status'>): boolean => status === 'queued' || status === 'processing';

export const aspectClass = ({ aspectRatio }: Pick<Drawing, 'aspectRatio'>): string => `is-${aspectRatio}`;
