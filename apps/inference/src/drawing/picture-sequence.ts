import type { StoredPicture } from '../pictures/picture-store';

/** The pictures of a drawing, stored one after the other, because encoding a high-resolution one takes much memory. */
export class PictureSequence {
  private readonly controller = new AbortController();
  private stored: Promise<StoredPicture[]> = Promise.resolve([]);

  /** Aborts, with the error as its reason, at the first picture that cannot be stored: the others are of no use. */
  get failed(): AbortSignal {
    return this.controller.signal;
  }

  add(store: () => Promise<StoredPicture>): void {
    this.stored = this.stored.then(async (before) => [...before, await store()]);
    this.stored.catch((error) => this.controller.abort(error));
  }

  /** @throws the error of the first picture that cannot be stored */
  all(): Promise<StoredPicture[]> {
    return this.stored;
  }
}
