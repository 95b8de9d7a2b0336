import {
  type AspectRatio,
  mostAreas,
  type PictureSize,
  problemsOfSize,
  sizeDrawnFrom,
  sizeOfPicture,
  sizeOfShape,
  type SizeRules,
} from '@app/diffusion/sizes';
import type { InstalledModel } from './model-store';

/** Names whose pictures have the sizes of the specification, whichever model draws them. */
export const specified = { names: ['sd1.5', 'sd2.1'], edge: 512 };
/** Of a model that cannot be read, which draws nothing. */
const unread = { nativeSize: specified.edge, sizeMultiple: 8 };

type Served = Pick<InstalledModel, 'nativeSize' | 'sizeMultiple' | 'maxPixels'>;

/** The sizes of a model's pictures. */
export class PictureSizes {
  /** What decides them. */
  readonly rules: SizeRules;

  /**
   * @param name of the model in the request
   * @param served the model that draws it
   */
  constructor(name: string, { nativeSize = unread.nativeSize, sizeMultiple, maxPixels }: Served) {
    this.rules = {
      edge: specified.names.includes(name) ? specified.edge : nativeSize,
      multiple: sizeMultiple ?? unread.sizeMultiple,
      maxPixels: maxPixels ?? mostAreas * nativeSize ** 2,
    };
  }

  /** Of one of the three words, or of a ratio such as "16:9". */
  ofRatio(ratio: string): PictureSize {
    const [width, height] = ratio.split(':').map(Number);
    return height === undefined
      ? sizeOfPicture(this.rules.edge, ratio as AspectRatio)
      : sizeOfShape(this.rules, { width, height });
  }

  /** At which it draws from a picture, where nothing else says. */
  from(picture: PictureSize): PictureSize {
    return sizeDrawnFrom(this.rules, picture);
  }

  /** What is wrong with each edge of a size that is asked for, as the end of a sentence that names the nearest. */
  problemsOf(size: PictureSize): ReturnType<typeof problemsOfSize> {
    return problemsOfSize(this.rules, size);
  }
}
