export { nearestSize } from './pixels';
export type { Pixels, Size } from './pixels';
export { PictureDecoder } from './picture-decoder';
export { NoPictureError, PictureError } from './picture-error';
export { PictureReader } from './picture-reader';
export type { Reading, ReadMask, ReadPicture } from './picture-reader';
export { PicturesModule } from './pictures.module';
export { assertLearnable } from './training-pictures';
export type { PictureToLearn } from './training-pictures';
