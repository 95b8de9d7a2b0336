/** Kinds of failure a caller can cause; the api maps each to a status. */
export type DomainErrorKind = 'invalid' | 'forbidden' | 'notFound' | 'conflict' | 'unprocessable';

/** One place in the request body that is wrong. */
export interface FieldProblem {
  /** RFC 6901 pointer into the body. */
  pointer: string;
  message: string;
}

/** A rule of the domain was broken. `code` is stable, the message names the value and what is accepted. */
export class DomainError extends Error {
  constructor(
    readonly kind: DomainErrorKind,
    readonly code: string,
    message: string,
    readonly fields?: readonly FieldProblem[],
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/** The id is unknown, or another caller's: both read the same, so the message names no id. */
export class NotFoundError extends DomainError {
  /** @param resource in CamelCase, such as `Generation`. */
  constructor(resource: string) {
    super('notFound', `${resource}NotFound`, `There is no ${resource} with this id.`);
  }
}

/** A well-formed request that cannot be carried out. */
export class UnprocessableError extends DomainError {
  constructor(code: string, message: string, fields?: readonly FieldProblem[]) {
    super('unprocessable', code, message, fields);
  }
}

/** The request does not fit the present state of the resource. */
export class ConflictError extends DomainError {
  constructor(code: string, message: string) {
    super('conflict', code, message);
  }
}

/** The caller may read this but not change it. */
export class ForbiddenError extends DomainError {
  constructor(code: string, message: string) {
    super('forbidden', code, message);
  }
}

/** The body breaks a rule that only the service can check. */
export class InvalidError extends DomainError {
  constructor(code: string, message: string, fields?: readonly FieldProblem[]) {
    super('invalid', code, message, fields);
  }
}
