import { type Drawing, highResolutionLongEdge, type OutputFormat } from '@app/domain';
import type { NewTask } from './task-intake';
import type { NewTraining } from './trainings';

/** Bytes per pixel in the file of a photograph-like picture. */
const bytesPerPixel: Record<OutputFormat, number> = { png: 1.5, jpeg: 0.5, webp: 0.3 };
const thumbnailBytes = 64_000;

/** Rows and index entries of a task, its drawing, its record and its delivery, without their texts. */
const taskRowBytes = 2_000;
/** With the largest metadata: it may be changed at any time. */
export const finetuneRecordBytes = 20_000;
export const collectionRecordBytes = 1_000;
/** Without its texts and its thumbnail. */
const styleRowBytes = 600;

/** What a task takes of its owner's storage: for its pictures, estimated, until it ends, and for its rows. */
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

/** Bytes of a Style's row, without its thumbnail. */
export const styleRecordBytes = (...texts: readonly (string | null)[]): number =>
  styleRowBytes + texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0);

function pixelsOf(drawing: Pick<Drawing, 'numImages' | 'width' | 'height' | 'highResolution'>): number {
  const { numImages, width, height, highResolution } = drawing;
  const scale = highResolution ? highResolutionLongEdge / Math.max(width, height) : 1;
  return numImages * width * height * scale ** 2;
}
