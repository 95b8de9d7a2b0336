import type { DrawnPicture, Settlement } from '@app/tasks';
import { PicturesFilteredError } from '../engine-client/task-errors';
import type { RgbImage } from '../engine/engine-protocol';
import type { PictureParameters } from '../pictures/image-encoder';

/** A picture that is drawn. */
interface Drawn {
  index: number;
  picture: RgbImage;
  parameters: PictureParameters;
  /** Whether the safety checker has flagged it. */
  isFlagged: boolean;
}

interface Ways {
  /** Whether flagged pictures are not stored. */
  blocks: boolean;
  /** What the operator's moderation says against a picture, if it flags it. */
  flags: (picture: RgbImage) => Promise<string | undefined>;
  /** @param isFirst whether it is the first that is stored */
  save: (drawn: Drawn, isFirst: boolean) => Promise<DrawnPicture>;
}

/** The pictures of a drawing, stored one after the other, because encoding a high-resolution one takes much memory. */
export class PictureSequence {
  private readonly controller = new AbortController();
  private stored: Promise<DrawnPicture[]> = Promise.resolve([]);
  private filtered = 0;
  private readonly flagged: number[] = [];
  private readonly flaggedBy = new Set<string>();

  constructor(private readonly ways: Ways) {}

  /** Aborts, with the error as its reason, at the first picture that cannot be stored: the others are of no use. */
  get failed(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether flagged pictures are not stored. */
  get blocks(): boolean {
    return this.ways.blocks;
  }

  add(drawn: Drawn): void {
    this.stored = this.stored.then((before) => this.store(drawn, before));
    this.stored.catch((error) => this.controller.abort(error));
  }

  /** @throws PicturesFilteredError if none is left; the error of the first picture that cannot be stored */
  async all(): Promise<Pick<Required<Settlement>, 'filtered' | 'flagged' | 'flaggedBy'> & { images: DrawnPicture[] }> {
    const images = await this.stored;
    const { filtered, flagged } = this;
    const flaggedBy = [...this.flaggedBy];
    if (images.length === 0) throw new PicturesFilteredError(filtered, flaggedBy);
    return { images, filtered, flagged, flaggedBy };
  }

  private async store(drawn: Drawn, before: readonly DrawnPicture[]): Promise<DrawnPicture[]> {
    const { blocks, flags, save } = this.ways;
    const by = drawn.isFlagged ? ['safety checker'] : [];
    // Nobody else is asked about what is not stored anyway.
    const said = blocks && drawn.isFlagged ? undefined : await flags(drawn.picture);
    if (said !== undefined) by.push(said);
    if (by.length > 0) {
      for (const each of by) this.flaggedBy.add(each);
      if (blocks) {
        this.filtered++;
        return [...before];
      }
      this.flagged.push(drawn.index);
    }
    return [...before, await save(drawn, before.length === 0)];
  }
}
