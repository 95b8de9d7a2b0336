import { limits } from '../common/limits';
import { DomainError } from './domain-error';

/** The body is larger than allowed. */
export class BodyTooLargeError extends DomainError<'tooLarge'> {
  constructor(maxBytes: number = limits.bodyBytes) {
    super('tooLarge', 'BodyTooLarge', `The body must be at most ${maxBytes} bytes.`);
  }
}

/** The body cannot be read at all. */
export class MalformedBodyError extends DomainError<'invalid'> {
  constructor(reason: string) {
    super('invalid', 'MalformedBody', `The body cannot be read: ${reason}.`);
  }
}
