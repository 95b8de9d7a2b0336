/** A request that cannot be drawn. The message is one sentence that names the value and what is accepted. */
export class RequestError extends RangeError {
  override readonly name = 'RequestError';
}
