import { availableParallelism } from 'node:os';
import { Readable } from 'node:stream';
import type { Image, ImageTask } from '@app/domain';
import { highResolutionLongEdge, newIdentifier } from '@app/domain';
import { IMAGE_STORAGE } from '@app/foundation';
import { attemptFolder } from '@app/image-tasks';
import { FairTurns } from '@app/process';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import type { RgbPicture } from '../engine/engine-protocol';
import type { PictureParameters } from './image-encoder';
import { encodePicture } from './image-encoder';

/** A stored picture, as its row describes it. */
export type StoredPicture = Omit<Image, 'task' | 'taskId'>;

/** Half of the processor, because the engine needs it at the same time. Libuv has four threads for it in any case. */
const encodingsAtOnce = Math.min(4, Math.max(1, Math.floor(availableParallelism() / 2)));

/** Encodes pictures and stores their files under `<task id>/<attempt>/`. */
@Injectable()
export class PictureStore {
  /**
   * Owners take turns. A high-resolution picture takes a second or more, for which one of ordinary size does not wait.
   */
  private readonly turns = { ordinary: newTurns(), large: newTurns() };

  constructor(@Inject(IMAGE_STORAGE) private readonly storage: ImageStorage) {}

  /**
   * The file is complete and on disk when this resolves.
   * @param throwIfGivenUp called when its turn has come
   */
  async save(
    task: Pick<ImageTask, 'id' | 'attempt' | 'ownerId' | 'outputFormat' | 'highResolution'>,
    index: number,
    picture: RgbPicture,
    parameters: PictureParameters,
    throwIfGivenUp: () => void,
  ): Promise<StoredPicture> {
    const size = task.highResolution ? enlargedSize(picture) : picture;
    const turns = task.highResolution ? this.turns.large : this.turns.ordinary;
    const { parts, extension, ...file } = await turns.run(task.ownerId, () => {
      throwIfGivenUp();
      return encodePicture(picture, task.outputFormat, parameters, size);
    });
    const storageKey = `${attemptFolder(task)}/${index}.${extension}`;
    await this.storage.write(storageKey, Readable.from(parts));
    return { id: newIdentifier(), token: newIdentifier(), index, storageKey, ...file };
  }

  /** Removes every file of an attempt. */
  async discard(task: Pick<ImageTask, 'id' | 'attempt'>): Promise<void> {
    await this.storage.removeAll(attemptFolder(task));
  }
}

function newTurns(): FairTurns {
  return new FairTurns({ concurrency: encodingsAtOnce, perKey: Infinity, total: Infinity });
}

/** The size with the same aspect ratio whose long edge is that of high resolution. */
function enlargedSize({ width, height }: RgbPicture): { width: number; height: number } {
  const scale = highResolutionLongEdge / Math.max(width, height);
  return { width: Math.round(width * scale), height: Math.round(height * scale) };
}
