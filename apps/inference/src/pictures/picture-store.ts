import { Readable } from 'node:stream';
import type { Image, ImageTask } from '@app/domain';
import { highResolutionLongEdge, newIdentifier } from '@app/domain';
import { IMAGE_STORAGE } from '@app/storage';
import { attemptFolder } from '@app/tasks';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { DrawingAbortedError } from '../engine/engine-errors';
import type { RgbPicture } from '../engine/engine-protocol';
import { EncodingTurns } from './encoding-turns';
import type { EncodedPicture, PictureParameters } from './image-encoder';
import { encodePicture } from './image-encoder';

/** A stored picture, as its row describes it. */
export type StoredPicture = Omit<Image, 'task' | 'taskId'>;

/** Encodes pictures and stores their files under `<task id>/<attempt>/`. */
@Injectable()
export class PictureStore {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    @Optional() private readonly turns: EncodingTurns = new EncodingTurns(),
  ) {}

  /**
   * The file is complete and on disk when this resolves.
   * @throws DrawingAbortedError if the task is given up before its turn has come
   */
  async save(
    task: Pick<ImageTask, 'id' | 'attempt' | 'ownerId' | 'outputFormat' | 'highResolution'>,
    index: number,
    picture: RgbPicture,
    parameters: PictureParameters,
    givenUp: AbortSignal,
  ): Promise<StoredPicture> {
    const size = task.highResolution ? enlargedSize(picture) : picture;
    const encode = async (): Promise<EncodedPicture> => {
      if (givenUp.aborted) throw new DrawingAbortedError('The task was given up before its pictures were encoded.');
      return encodePicture(picture, task.outputFormat, parameters, size);
    };
    const { parts, extension, ...file } = await (task.highResolution
      ? this.turns.large(task.ownerId, givenUp, encode)
      : this.turns.ordinary(task.ownerId, encode));
    const storageKey = `${attemptFolder(task)}/${index}.${extension}`;
    await this.storage.write(storageKey, Readable.from(parts));
    return { id: newIdentifier(), token: newIdentifier(), index, storageKey, ...file };
  }

  /** A task of this owner is drawn on this device, until the result is called. */
  noteDrawing(owner: string, device: string | undefined): () => void {
    return device === 'cpu' ? this.turns.noteDrawing(owner) : () => undefined;
  }

  /** Removes every file of an attempt. */
  async discard(task: Pick<ImageTask, 'id' | 'attempt'>): Promise<void> {
    await this.storage.removeAll(attemptFolder(task));
  }
}

/** The size with the same aspect ratio whose long edge is that of high resolution. */
function enlargedSize({ width, height }: RgbPicture): { width: number; height: number } {
  const scale = highResolutionLongEdge / Math.max(width, height);
  return { width: Math.round(width * scale), height: Math.round(height * scale) };
}
