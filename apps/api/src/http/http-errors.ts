import type { ErrorCode, ErrorKind } from '@app/domain';
import { DomainError, limits, TooManyError } from '@app/domain';

/** A failure whose answer has headers of its own. */
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

/** No key, an unknown one, or a revoked one; the answer does not say which. */
export class UnauthorizedError extends HttpError<'unauthorized'> {
  constructor(message = 'A valid API key is needed: Authorization: Bearer <API_KEY>.') {
    super('unauthorized', 'Unauthorized', message, { 'WWW-Authenticate': 'Bearer realm="darkroom"' });
  }
}

/** Metrics are not for everybody. */
export class MetricsRefusedError extends HttpError<'unauthorized'> {
  constructor() {
    super(
      'unauthorized',
      'Unauthorized',
      'Metrics are for this machine itself, or for Authorization: Bearer <METRICS_TOKEN> where that is set.',
      { 'WWW-Authenticate': 'Bearer realm="darkroom metrics"' },
    );
  }
}

/** The path is no route's. */
export class RouteNotFoundError extends DomainError<'notFound'> {
  constructor(method: string, path: string) {
    super('notFound', 'RouteNotFound', `There is no route ${method} ${path}.`);
  }
}

/** The path has routes, but not with this method. */
export class MethodNotAllowedError extends HttpError<'methodNotAllowed'> {
  constructor(method: string, allowed: readonly string[]) {
    super('methodNotAllowed', 'MethodNotAllowed', `${method} is not allowed here; ${allowed.join(', ')} are.`, {
      Allow: allowed.join(', '),
    });
  }
}

/** The body has more bytes than it may. */
export class BodyTooLargeError extends DomainError<'tooLarge'> {
  constructor(maxBytes: number = limits.bodyBytes) {
    super('tooLarge', 'BodyTooLarge', `The body must be at most ${maxBytes} bytes.`);
  }
}

/** The body is no JSON in UTF-8. */
export class UnsupportedMediaTypeError extends DomainError<'unsupportedType'> {
  constructor(got: string | undefined) {
    super(
      'unsupportedType',
      'UnsupportedMediaType',
      `The body must be JSON in UTF-8 (Content-Type: application/json), got ${got ?? 'no content type'}.`,
    );
  }
}

/** The body cannot be read at all. */
export class MalformedBodyError extends DomainError<'invalid'> {
  constructor(reason: string) {
    super('invalid', 'MalformedBody', `The body cannot be read: ${reason}.`);
  }
}

/** The body came too slowly. */
export class BodyTimeoutError extends DomainError<'timeout'> {
  constructor(timeoutMs: number) {
    super('timeout', 'BodyTimeout', `The body must come within ${timeoutMs / 1000} s.`);
  }
}

/** The key is valid, but not for this. */
export class ScopeMissingError extends DomainError<'forbidden'> {
  constructor(scope: string) {
    super('forbidden', 'ScopeMissing', `This needs an API key with the scope "${scope}".`);
  }
}

/** The first request with this Idempotency-Key has not been answered yet. */
export class KeyInUseError extends DomainError<'conflict'> {
  constructor(retryAfterSeconds = 1) {
    super('conflict', 'IdempotencyKeyInUse', 'A request with this Idempotency-Key is still running.', {
      retryAfterSeconds,
    });
  }
}

/** The key has made its requests of this minute. */
export class RateLimitedError extends TooManyError {
  constructor(limit: number, retryAfterSeconds: number) {
    super(
      'RateLimited',
      `This API key may make ${limit} requests a minute. Try again in ${retryAfterSeconds} s.`,
      retryAfterSeconds,
    );
  }
}

/** The key has as much waiting as it may have. */
export class QueueFullError extends TooManyError {
  constructor(max: number, queued: number, added: number, retryAfterSeconds = 10) {
    super(
      'QueueFull',
      `This API key may have ${max} Generations and Prompts waiting; ${queued} are, and this would add ${added}.`,
      retryAfterSeconds,
    );
  }
}

/** The key has as many requests waiting for their turn as may wait. */
export class TooManyRequestsError extends TooManyError {
  constructor(max: number, retryAfterSeconds = 1) {
    super(
      'TooManyRequests',
      `This API key may have ${max} requests waiting to be served; wait for some of their answers.`,
      retryAfterSeconds,
    );
  }
}

/** So many of one owner's pictures are asked for that more would only wait. */
export class TooManyPicturesError extends TooManyError {
  constructor(retryAfterSeconds = 1) {
    super(
      'TooManyRequests',
      'Too many pictures of one owner are being read; ask again in a moment.',
      retryAfterSeconds,
    );
  }
}

/** The key has as many requests open of a kind that stays open as it may have. */
export class TooManyOpenError extends TooManyError {}

/** Something the service needs is down for the moment. */
export class ServiceUnavailableError extends DomainError<'unavailable'> {
  constructor(message: string, retryAfterSeconds = 2) {
    super('unavailable', 'ServiceUnavailable', message, { retryAfterSeconds });
  }
}

/** The service is at fault; what went wrong is for its logs only. */
export class InternalError extends DomainError<'internal'> {
  constructor() {
    super('internal', 'InternalError', 'Something went wrong on our side.');
  }
}
