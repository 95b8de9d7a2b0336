import type { DrawnPicture } from '@app/tasks';

/** The pictures of a drawing, stored one after the other, because encoding a high-resolution one takes much memory. */
export class PictureSequence {
  private readonly controller = new AbortController();
  private stored: Promise<DrawnPicture[]> = Promise.resolve([]);

  /** Aborts, with the error as its reason, at the first picture that cannot be stored: the others are of no use. */
  get failed(): AbortSignal {
    return this.controller.signal;
  }

  add(store: () => Promise<DrawnPicture>): void {
    this.stored = this.stored.then(async (before) => [...before, await store()]);
    this.stored.catch((error) => this.controller.abort(error));
  }

  /** @throws the error of the first picture that cannot be stored */
  all(): Promise<DrawnPicture[]> {
    return this.stored;
  }
}
