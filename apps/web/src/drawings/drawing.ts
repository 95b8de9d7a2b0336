import type { components, Generation, ListedDrawing, Prompt, PromptStatus } from '../service/client';
import { isWord } from './shapes';
import { pictureUrl } from '../service/reach';

export type Status = components['schemas']['GenerationStatus'];

/** A Generation or a Prompt of a Fine-Tune, as the list of all tells of it. */
export interface Listed extends Pick<
  ListedDrawing,
  'id' | 'prompt' | 'status' | 'error' | 'num_generations' | 'filtered' | 'width' | 'height' | 'created_at'
> {
  /** Where this page reads the first picture's thumbnail; null if there is none. */
  thumbnail: string | null;
  /** Whose it is; a Prompt's is in its status. */
  user?: string | null;
  /** A Prompt's only. */
  finetuneId?: string;
}

/** One whose record was read. */
export interface Drawing
  extends
    Listed,
    Pick<
      Generation,
      | 'negative_prompt'
      | 'aspect_ratio'
      | 'cfg'
      | 'steps'
      | 'seed'
      | 'scheduler'
      | 'high_resolution'
      | 'prompt_weighting'
      | 'images'
      | 'finetunes'
      | 'image'
      | 'strength'
      | 'mask'
      | 'outpaint'
      | 'control'
      | 'references'
      | 'served_by'
    > {
  /** As requests name its pictures; `images` is where this page reads them. */
  publicUrls: readonly string[];
  /** As requested; a Prompt's is its Fine-Tune's. */
  model?: string;
}

/** A list may have told that it is drawn before its pictures were read. */
export const isWhole = (drawing: Listed | undefined): drawing is Drawing =>
  drawing !== undefined &&
  'images' in drawing &&
  (drawing.status !== 'succeeded' || (drawing as Drawing).images.length > 0);

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

const shownAt = (url: string | null): string | null => url && pictureUrl(url);

export const listedOf = ({ finetune, thumbnail, ...drawing }: ListedDrawing): Listed => ({
  ...drawing,
  thumbnail: shownAt(thumbnail),
  ...(finetune !== null && { finetuneId: finetune }),
});

export const drawingOfGeneration = (record: Generation): Drawing => ({
  ...record,
  images: record.images.map(pictureUrl),
  thumbnail: shownAt(record.thumbnail),
  publicUrls: record.images,
  created_at: record.started_at,
});

/** What a Prompt's status tells of it. */
type Told = Pick<
  PromptStatus,
  | 'status'
  | 'num_generations'
  | 'width'
  | 'height'
  | 'scheduler'
  | 'prompt_weighting'
  | 'control'
  | 'served_by'
  | 'filtered'
  | 'thumbnail'
>;

export function drawingOfPrompt(record: Prompt, told: Told, finetuneId: string): Drawing {
  const { images, error_message: error } = record;
  return {
    ...record,
    ...told,
    images: images.map(pictureUrl),
    publicUrls: images,
    thumbnail: shownAt(told.thumbnail),
    finetuneId,
    finetunes: [],
    image: record.image ?? null,
    strength: record.strength ?? null,
    mask: record.mask ?? null,
    outpaint: record.outpaint ?? null,
    references: record.references ?? [],
    error,
  };
}

/** Statuses in words. */
export const statusText: Record<Status, string> = {
  queued: 'Waiting',
  processing: 'Drawing',
  succeeded: 'Finished',
  failed: 'Failed',
  canceled: 'Canceled',
};

export const isOpen = ({ status }: Pick<Listed, 'status'>): boolean => status === 'queued' || status === 'processing';

type Shaped = Pick<Drawing, 'aspect_ratio'> & Partial<Pick<Drawing, 'width' | 'height'>>;

/** The shape in words. */
export function shapeText({ aspect_ratio, width, height }: Shaped): string {
  if (aspect_ratio === null) return `${width} x ${height}`;
  return isWord(aspect_ratio) ? aspect_ratio.replace(/^./, (first) => first.toUpperCase()) : aspect_ratio;
}

/** Of a frame: its ratio, and how wide it is beside a square one. */
export function frameStyle({ width, height }: Pick<Listed, 'width' | 'height'>): Record<string, string> {
  const ratio = width / height;
  const wide = ratio < 1 ? Math.max(0.35, 1.08 * ratio) : Math.min(1.5, Math.sqrt(ratio));
  return { '--ratio': ratio.toFixed(4), '--wide': (ratio === 1 ? 1 : wide).toFixed(3) };
}
