/** Nothing can be signed as it is set up; the message says why, in a sentence. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError';
}

/** The credentials of a given picture cannot be worked with. */
export class IngredientError extends Error {
  override readonly name = 'IngredientError';

  /** @param id its `instance_id` */
  constructor(
    readonly id: string,
    override readonly cause: Error,
  ) {
    super(cause.message);
  }
}
