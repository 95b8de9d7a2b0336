import { type Drawing, highResolutionLongEdge, type OutputFormat } from '@app/domain';
import type { NewTask } from './task-intake';
import type { NewTraining } from './trainings';

/** Bytes of a pixel of a photograph-like picture in its file. */
const bytesPerPixel: Record<OutputFormat, number> = { png: 1.5, jpeg: 0.5, webp: 0.3 };
/** Of a Prompt's thumbnail. */
const thumbnailBytes = 64_000;

/** Rows and entries of indexes of a task, its drawing, its record and its delivery, beside their texts. */
const taskRowBytes = 2_000;
/** A Fine-Tune with the largest metadata: it may be changed at any time. */
export const finetuneRecordBytes = 20_000;
export const collectionRecordBytes = 1_000;
/** A Style without its texts and its thumbnail. */
const styleRowBytes = 600;

/** What a task takes of its owner's storage: for its pictures, about, until it ends, and for its rows. */
export interface TaskStorage {
  reservedBytes: number;
  recordBytes: number;
}

/** The storage of a drawing and its record. */
export function storageOf(task: Omit<NewTask, 'sandbox' | 'promptChunks'>): TaskStorage {
  const { prompt, negativePrompt, inputs, generation, finetunePrompt, kind } = task;
  const texts = Buffer.byteLength(JSON.stringify([prompt, negativePrompt, inputs, generation, finetunePrompt]));
  return {
    reservedBytes:
      Math.ceil(pixelsOf(task) * bytesPerPixel[task.outputFormat]) + (kind === 'prompt' ? thumbnailBytes : 0),
    recordBytes: taskRowBytes + texts,
  };
}

/** The storage of a Fine-Tune that is to be trained, without its weights, whose size its model decides. */
export function storageOfTraining({ training }: Pick<NewTraining, 'training'>): TaskStorage {
  return { reservedBytes: 0, recordBytes: taskRowBytes + Buffer.byteLength(JSON.stringify(training)) };
}

/** Bytes of a Style's row; its thumbnail is counted beside. */
export const styleRecordBytes = (...texts: readonly (string | null)[]): number =>
  styleRowBytes + texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0);

function pixelsOf(drawing: Pick<Drawing, 'numImages' | 'width' | 'height' | 'highResolution'>): number {
  const { numImages, width, height, highResolution } = drawing;
  const scale = highResolution ? highResolutionLongEdge / Math.max(width, height) : 1;
  return numImages * width * height * scale ** 2;
}
