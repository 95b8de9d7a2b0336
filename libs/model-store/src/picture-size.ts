import { type AspectRatio, sizeOfPicture } from '@app/diffusion/files';
import type { InstalledModel } from './model-store';

/** Names whose pictures have the sizes of the specification, whichever model draws them. */
const specified: readonly string[] = ['sd1.5', 'sd2.1'];
const specifiedEdge = 512;

/**
 * Width and height in pixels of a model's pictures.
 * @param name of the model in the request
 * @param served the model that draws it
 */
export function pictureSize(name: string, served: Pick<InstalledModel, 'nativeSize'>, ratio: AspectRatio) {
  return sizeOfPicture(specified.includes(name) ? specifiedEdge : (served.nativeSize ?? specifiedEdge), ratio);
}
