import { InvalidError } from '@app/domain';

/** A query parameter is wrong. */
export function badParameter(parameter: string, message: string): InvalidError {
  return new InvalidError('ValidationFailed', `The query parameter "${parameter}" ${message}.`, [
    { parameter, message },
  ]);
}
