import { createHash } from 'node:crypto';
import { limits } from '@app/domain';
import { PictureError } from './picture-error';
import type { ReadPicture } from './picture-reader';

/** A picture to learn from, with its name in the request. */
export interface PictureToLearn {
  field: string;
  picture: ReadPicture;
}

/**
 * A picture that is scaled up many times teaches nothing, and one given four times teaches only itself. Pictures are
 * the same where they have the same pixels at the size of the training, whatever their files.
 * @throws PictureError for one that is too small, or is repeated where too few differ
 */
export function assertLearnable(pictures: readonly PictureToLearn[]): void {
  const { trainingImages, trainingImageEdge: edge } = limits;
  const first = new Map<string, string>();
  let again: PictureError | undefined;
  for (const { field, picture } of pictures) {
    const { width, height, image } = picture;
    if (Math.min(width, height) < edge)
      throw new PictureError(
        field,
        `has ${width} x ${height} pixels, and one to train with has at least ${edge} on each edge`,
      );
    const sha256 = createHash('sha256').update(image.data).digest('hex');
    const other = first.get(sha256);
    if (other === undefined) first.set(sha256, field);
    else
      again ??= new PictureError(
        field,
        `is the same as that in \`${other}\`, and at least ${trainingImages.min} different ones are needed`,
      );
  }
  if (again && first.size < trainingImages.min) throw again;
}
