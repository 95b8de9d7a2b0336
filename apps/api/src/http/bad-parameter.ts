import { InvalidError } from '@app/domain';

/** A query parameter is wrong. */
export function badParameter(name: string, message: string): InvalidError {
  return new InvalidError('ValidationFailed', `The query parameter "${name}" ${message}.`, [
    { pointer: `/${name}`, message },
  ]);
}
