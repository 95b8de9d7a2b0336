import { DomainError, type ErrorCode, type ErrorKind } from '@app/domain';

/** An error whose response has headers of its own. */
export class HttpError<K extends ErrorKind = ErrorKind> extends DomainError<K> {
  constructor(
    kind: K,
    code: ErrorCode<K>,
    message: string,
    readonly headers: Readonly<Record<string, string>>,
  ) {
    super(kind, code, message);
  }
}

/** The path matches no route. */
export class RouteNotFoundError extends DomainError<'notFound'> {
  constructor(method: string, path: string) {
    super('notFound', 'RouteNotFound', `There is no route ${method} ${path}.`);
  }
}

/** The path has routes, but not for this method. */
export class MethodNotAllowedError extends HttpError<'methodNotAllowed'> {
  constructor(method: string, allowed: readonly string[]) {
    const last = allowed.at(-1);
    const others = allowed.slice(0, -1).join(', ');
    const listed = others ? `${others} and ${last} are` : `only ${last} is`;
    super('methodNotAllowed', 'MethodNotAllowed', `${method} is not allowed here; ${listed}.`, {
      Allow: allowed.join(', '),
    });
  }
}

/** The service is at fault; details go only to its logs. */
export class InternalError extends DomainError<'internal'> {
  constructor() {
    super('internal', 'InternalError', 'Something went wrong on our side.');
  }
}
