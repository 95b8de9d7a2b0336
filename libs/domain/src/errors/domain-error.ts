import { limits } from '../common/limits';
import type { ErrorCode, ErrorKind } from './error-table';

/** One invalid place in a request: a field of its body, or a parameter of its query. */
export interface FieldProblem {
  /** RFC 6901 pointer into the body. */
  pointer?: string;
  parameter?: string;
  message: string;
}

/** Optional details of an error beside its message. */
export interface ErrorDetails {
  fields?: readonly FieldProblem[];
  /** When a retry may succeed. */
  retryAfterSeconds?: number;
}

/**
 * Base class of all errors that a caller is told. `code` is stable, the message names the value and what is accepted,
 * and the table of errors says how it is answered.
 */
export class DomainError<K extends ErrorKind = ErrorKind> extends Error {
  readonly fields?: readonly FieldProblem[];
  readonly retryAfterSeconds?: number;

  constructor(
    readonly kind: K,
    readonly code: ErrorCode<K>,
    message: string,
    { fields, retryAfterSeconds }: ErrorDetails = {},
  ) {
    super(message);
    this.name = new.target.name;
    this.fields = fields;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

type NameIn<Code> = Code extends `${infer Name}NotFound` ? Name : never;
/** Kinds of records that can be not found, in CamelCase, such as `Generation`. */
export type ResourceName = NameIn<ErrorCode<'notFound'>>;

/** The id is unknown or another caller's. Both read the same, so the message names no id. */
export class NotFoundError extends DomainError<'notFound'> {
  constructor(resource: ResourceName) {
    super('notFound', `${resource}NotFound`, `There is no ${inWords(resource)} with this id.`);
  }
}

function inWords(resource: ResourceName): string {
  return resource === 'FineTune' ? 'Fine-Tune' : resource;
}

/** No key, an unknown one, or a revoked one; the response does not say which. */
export class UnauthorizedError extends DomainError<'unauthorized'> {
  constructor(message = 'A valid API key is needed: send the header Authorization: Bearer <key>.') {
    super('unauthorized', 'Unauthorized', message);
  }
}

/** A well-formed request that cannot be carried out. */
export class UnprocessableError extends DomainError<'unprocessable'> {
  constructor(code: ErrorCode<'unprocessable'>, message: string, fields?: readonly FieldProblem[]) {
    super('unprocessable', code, message, { fields });
  }
}

/** The request does not fit the current state of the resource. */
export class ConflictError extends DomainError<'conflict'> {
  constructor(code: ErrorCode<'conflict'>, message: string) {
    super('conflict', code, message);
  }
}

/** The caller may read this but not change it. */
export class ForbiddenError extends DomainError<'forbidden'> {
  constructor(code: ErrorCode<'forbidden'>, message: string) {
    super('forbidden', code, message);
  }
}

/** The body breaks a rule that only the service can check. */
export class InvalidError extends DomainError<'invalid'> {
  constructor(code: ErrorCode<'invalid'>, message: string, fields?: readonly FieldProblem[]) {
    super('invalid', code, message, { fields });
  }
}

/** The key does more at once than it may; it may try again later. */
export class TooManyError extends DomainError<'tooMany'> {
  constructor(code: ErrorCode<'tooMany'>, message: string, retryAfterSeconds: number) {
    super('tooMany', code, message, { retryAfterSeconds });
  }
}

/** Something the service needs is unavailable at the moment. */
export class ServiceUnavailableError extends DomainError<'unavailable'> {
  constructor(message: string, retryAfterSeconds = 2) {
    super('unavailable', 'ServiceUnavailable', message, { retryAfterSeconds });
  }
}

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
