/** A picture that a caller named or sent cannot be used: one plain sentence with the name of its field. */
export class PictureError extends Error {
  override readonly name = 'PictureError';

  /**
   * @param field of the request, such as `image` or `control[0].image`.
   * @param reason the rest of a sentence that begins with the picture.
   */
  constructor(
    readonly field: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`The picture in \`${field}\` ${reason}.`, options);
  }
}

/** Why a file is not accepted as a picture: the rest of a sentence that begins with its name. */
export class NoPictureError extends Error {
  override readonly name = 'NoPictureError';
}

/** It has more pixels than are accepted, at all or where it was read. */
export class LargePictureError extends NoPictureError {}
