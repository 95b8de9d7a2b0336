import type { components, Generation, Prompt } from '../service/client';
import { pictureUrl } from '../service/reach';

export type Status = components['schemas']['GenerationStatus'];
export type AspectRatio = components['schemas']['AspectRatio'];

/** A Generation or a Prompt of a Fine-Tune, as the page shows it. */
export interface Drawing extends Pick<
  Generation,
  | 'id'
  | 'prompt'
  | 'negative_prompt'
  | 'aspect_ratio'
  | 'cfg'
  | 'steps'
  | 'seed'
  | 'images'
  | 'finetunes'
  | 'image'
  | 'strength'
  | 'mask'
  | 'control'
  | 'references'
> {
  /** As requests name its pictures; `images` is where this page reads them. */
  publicUrls: readonly string[];
  /** Where this page reads the first picture's thumbnail; null if there is none. */
  thumbnail: string | null;
  /** A Prompt's only. */
  finetuneId?: string;
  scheduler: string | null;
  high_resolution: boolean;
  prompt_weighting: boolean;
  num_generations: number;
  /** As requested; a Prompt's is its Fine-Tune's. */
  model?: string;
  served_by: string | null;
  status: Status;
  error: string | null;
  created_at: string;
}

/** How far a drawing is. */
export interface Progress {
  step: number;
  total: number;
  /** A `data:` URL. */
  preview?: string;
  /** Drawings that are likely to come before it. */
  position?: number;
  /** Whether it was restarted, because its worker has ended. */
  isAgain?: boolean;
  /** Whether no step has come for unusually long. */
  isSilent?: boolean;
}

export const drawingOfGeneration = (record: Generation): Drawing => ({
  ...record,
  images: record.images.map(pictureUrl),
  thumbnail: record.thumbnail && pictureUrl(record.thumbnail),
  publicUrls: record.images,
  created_at: record.started_at,
});

/** A Prompt's record has no status: pictures and an error say when it has terminated. */
export function drawingOfPrompt(record: Prompt, finetuneId: string): Drawing {
  const { images, error_message: error } = record;
  return {
    ...record,
    images: images.map(pictureUrl),
    publicUrls: images,
    thumbnail: null,
    finetuneId,
    scheduler: null,
    prompt_weighting: false,
    finetunes: [],
    image: record.image ?? null,
    strength: record.strength ?? null,
    mask: record.mask ?? null,
    control: [],
    references: record.references ?? [],
    num_generations: 1,
    served_by: null,
    status: images.length > 0 ? 'succeeded' : error !== null ? 'failed' : 'queued',
    error,
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

export const aspectClass = ({ aspect_ratio }: Pick<Drawing, 'aspect_ratio'>): string => `is-${aspect_ratio}`;
