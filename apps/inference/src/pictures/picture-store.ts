import { Readable } from 'node:stream';
import { type DrawingTask, highResolutionLongEdge, newIdentifier, thumbnailKeyOf } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { attemptFolder, type DrawnPicture, styleThumbnailFolder } from '@app/tasks';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { TaskAbortedError } from '../engine-client/task-errors';
import type { RgbImage } from '../engine/engine-protocol';
import { EncodingTurns } from './encoding-turns';
import { StorageHealth } from './storage-health';
import { sourceTypeOf } from './source-type';
import type { GivenPicture } from './picture-claims';
import { PictureCredentials } from './picture-credentials';
import { encodePicture, encodeThumbnail, encodeStyleThumbnail, type PictureParameters } from './image-encoder';

/** A picture to store. */
interface PictureToStore {
  index: number;
  picture: RgbImage;
  parameters: PictureParameters;
  /** What it was drawn from. */
  given?: readonly GivenPicture[];
  /** Of those of its task that are stored. */
  isFirst: boolean;
}

/**
 * Encodes pictures, signs them, and stores their files under `<task id>/<attempt>/`, with a thumbnail of the first that
 * is stored, and of a Prompt's first one more for Styles.
 */
@Injectable()
export class PictureStore {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    @Inject(PictureCredentials) private readonly credentials: Pick<PictureCredentials, 'sign'>,
    @Optional() private readonly turns: EncodingTurns = new EncodingTurns(),
    @Optional() @Inject(StorageHealth) private readonly health?: Pick<StorageHealth, 'stored'>,
  ) {}

  /**
   * The files are complete and on disk when this resolves.
   * @throws TaskAbortedError if the task is given up before its turn has come; CredentialsError
   */
  async save(
    task: Pick<DrawingTask, 'id' | 'kind' | 'attempt' | 'ownerId' | 'outputFormat' | 'highResolution' | 'inputs'>,
    { index, picture, parameters, given = [], isFirst }: PictureToStore,
    givenUp: AbortSignal,
  ): Promise<DrawnPicture> {
    const size = task.highResolution ? enlargedSize(picture) : picture;
    const type = sourceTypeOf(parameters);
    const encode = async () => {
      if (givenUp.aborted) throw new TaskAbortedError('The task was given up before its pictures were encoded.');
      return {
        encoded: await encodePicture(picture, task.outputFormat, parameters, size, task.inputs?.compression),
        thumbnail: isFirst ? await encodeThumbnail(picture, type) : undefined,
        styleThumbnail: isFirst && task.kind === 'prompt' ? await encodeStyleThumbnail(picture, type) : undefined,
      };
    };
    const { encoded, thumbnail, styleThumbnail } = await (task.highResolution
      ? this.turns.large(task.ownerId, givenUp, encode)
      : this.turns.ordinary(task.ownerId, encode));
    const signed = await this.credentials.sign(task, index, encoded, { parameters, given });
    const { parts, extension, ...file } = signed;
    const storageKey = `${attemptFolder(task)}/${index}.${extension}`;
    await this.storage.write(storageKey, Readable.from(parts));
    this.health?.stored();
    if (thumbnail) await this.storage.write(thumbnailKeyOf(storageKey), thumbnail);
    const drawn = {
      ...{ id: newIdentifier(), token: newIdentifier(), index, storageKey, ...file },
      thumbnailBytes: thumbnail?.length ?? null,
    };
    if (!styleThumbnail) return drawn;
    const ofStyles = { storageKey: `${styleThumbnailFolder(task)}/0.png`, bytes: styleThumbnail.length };
    await this.storage.write(ofStyles.storageKey, styleThumbnail);
    return { ...drawn, styleThumbnail: ofStyles };
  }

  /** A task of this owner is drawn on this device, until the result is called. */
  noteDrawing(owner: string, device: string | undefined): () => void {
    return device === 'cpu' ? this.turns.noteDrawing(owner) : () => undefined;
  }

  async discard(task: Pick<DrawingTask, 'id' | 'attempt'>): Promise<void> {
    await this.storage.removeAll(attemptFolder(task));
    await this.storage.removeAll(styleThumbnailFolder(task));
  }
}

/** The size with the same aspect ratio whose long edge is that of high resolution. */
function enlargedSize({ width, height }: RgbImage): { width: number; height: number } {
  const scale = highResolutionLongEdge / Math.max(width, height);
  return { width: Math.round(width * scale), height: Math.round(height * scale) };
}
