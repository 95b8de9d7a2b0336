import { limits } from '@app/domain';

/** A failure of the request itself, before any rule of the domain. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/** 401: no key, an unknown one, or a revoked one; the answer does not say which. */
export class UnauthorizedError extends HttpError {
  constructor(message = 'A valid API key is needed: Authorization: Bearer <API_KEY>.') {
    super(401, 'Unauthorized', message, { 'WWW-Authenticate': 'Bearer realm="darkroom"' });
  }
}

/** 401: metrics are not for everybody. */
export class MetricsRefusedError extends HttpError {
  constructor() {
    super(
      401,
      'Unauthorized',
      'Metrics are for this machine itself, or for Authorization: Bearer <METRICS_TOKEN> where that is set.',
      { 'WWW-Authenticate': 'Bearer realm="darkroom metrics"' },
    );
  }
}

/** 404 for a path that is no route's. */
export class RouteNotFoundError extends HttpError {
  constructor(method: string, path: string) {
    super(404, 'RouteNotFound', `There is no route ${method} ${path}.`);
  }
}

/** 405: the path has routes, but not with this method. */
export class MethodNotAllowedError extends HttpError {
  constructor(method: string, allowed: readonly string[]) {
    super(405, 'MethodNotAllowed', `${method} is not allowed here; ${allowed.join(', ')} are.`, {
      Allow: allowed.join(', '),
    });
  }
}

/** 413 */
export class BodyTooLargeError extends HttpError {
  constructor(maxBytes: number = limits.bodyBytes) {
    super(413, 'BodyTooLarge', `The body must be at most ${maxBytes} bytes.`);
  }
}

/** 415 */
export class UnsupportedMediaTypeError extends HttpError {
  constructor(got: string | undefined) {
    super(
      415,
      'UnsupportedMediaType',
      `The body must be JSON in UTF-8 (Content-Type: application/json), got ${got ?? 'no content type'}.`,
    );
  }
}

/** 400 for a body that cannot be read at all. */
export class MalformedBodyError extends HttpError {
  constructor(reason: string) {
    super(400, 'MalformedBody', `The body cannot be read: ${reason}.`);
  }
}

/** 408: the body came too slowly. */
export class BodyTimeoutError extends HttpError {
  constructor(timeoutMs: number) {
    super(408, 'BodyTimeout', `The body must come within ${timeoutMs / 1000} s.`);
  }
}

/** 403: the key is valid, but not for this. */
export class ScopeMissingError extends HttpError {
  constructor(scope: string) {
    super(403, 'ScopeMissing', `This needs an API key with the scope "${scope}".`);
  }
}

/** 409: the first request with this Idempotency-Key has not been answered yet. */
export class KeyInUseError extends HttpError {
  constructor(retryAfterSeconds = 1) {
    super(409, 'IdempotencyKeyInUse', 'A request with this Idempotency-Key is still running.', {
      'Retry-After': String(retryAfterSeconds),
    });
  }
}

/** 429: the key has made its requests of this minute. */
export class RateLimitedError extends HttpError {
  constructor(limit: number, retryAfterSeconds: number) {
    super(
      429,
      'RateLimited',
      `This API key may make ${limit} requests a minute. Try again in ${retryAfterSeconds} s.`,
      {
        'Retry-After': String(retryAfterSeconds),
      },
    );
  }
}

/** 429: the key has as much waiting as it may have. */
export class QueueFullError extends HttpError {
  constructor(max: number, queued: number, added: number, retryAfterSeconds = 10) {
    super(
      429,
      'QueueFull',
      `This API key may have ${max} Generations and Prompts waiting; ${queued} are, and this would add ${added}.`,
      { 'Retry-After': String(retryAfterSeconds) },
    );
  }
}

/** 429: the key has as many requests waiting for their turn as may wait. */
export class TooManyRequestsError extends HttpError {
  constructor(max: number, retryAfterSeconds = 1) {
    super(
      429,
      'TooManyRequests',
      `This API key may have ${max} requests waiting to be served; wait for some of their answers.`,
      { 'Retry-After': String(retryAfterSeconds) },
    );
  }
}

/** 429: so many of one owner's pictures are asked for that more would only wait. */
export class TooManyPicturesError extends HttpError {
  constructor(retryAfterSeconds = 1) {
    super(429, 'TooManyRequests', 'Too many pictures of one owner are being read; ask again in a moment.', {
      'Retry-After': String(retryAfterSeconds),
    });
  }
}

/** 429: the key has as many requests open of a kind that stays open as it may have. */
export class TooManyOpenError extends HttpError {
  constructor(code: 'TooManyEventStreams' | 'ListRunning' | 'QueueFull', message: string, retryAfterSeconds: number) {
    super(429, code, message, { 'Retry-After': String(retryAfterSeconds) });
  }
}

/** 503: something the service needs is down for the moment. */
export class ServiceUnavailableError extends HttpError {
  constructor(message: string, retryAfterSeconds = 2) {
    super(503, 'ServiceUnavailable', message, { 'Retry-After': String(retryAfterSeconds) });
  }
}
