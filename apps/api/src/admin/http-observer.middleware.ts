import { JsonLogger, Metrics, requestBuckets } from '@app/observability';
import { Injectable } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';

declare module 'express-serve-static-core' {
  interface Request {
    /** Of the records that the request made. */
    createdIds?: readonly string[];
  }
}

/** The client disconnected before it had the response. */
const clientClosedRequest = 499;
const shownCharacters = 6;
/** Paths that machines poll. */
const quiet = /^\/(health|metrics)(\/|$)/;

/** A picture's name is enough to see it: the log has only the part that finds its record. */
function loggable({ file, ...params }: Request['params']): Request['params'] {
  return typeof file === 'string' ? { ...params, file: `${file.slice(0, shownCharacters)}…` } : params;
}

/** One log line and one measurement per request. */
@Injectable()
export class HttpObserver {
  private readonly requests;
  private readonly seconds;

  constructor(
    metrics: Metrics,
    private readonly logger: JsonLogger,
  ) {
    this.requests = metrics.counter('http_requests_total', {
      help: 'Requests by what they were answered; 499: the client did not wait.',
      labels: ['route', 'method', 'status'],
    });
    this.seconds = metrics.histogram('http_request_seconds', {
      help: 'Time from the request to the end of its answer.',
      labels: ['route', 'method'],
      buckets: requestBuckets,
    });
  }

  observe(request: Request, response: Response, next: NextFunction): void {
    const startedAt = performance.now();
    response.once('close', () => this.note(request, response, performance.now() - startedAt));
    next();
  }

  private note(request: Request, response: Response, ms: number): void {
    const { method, apiKey, createdIds } = request;
    // A path without a route may be anything, so it must not become a label.
    const route = (request.route as { path?: string } | undefined)?.path ?? 'none';
    const status = response.writableFinished ? response.statusCode : clientClosedRequest;
    this.requests.inc({ route, method, status });
    this.seconds.observe({ route, method }, ms / 1000);
    const line = {
      method,
      route,
      ...(Object.keys(request.params ?? {}).length > 0 && { params: loggable(request.params) }),
      status,
      ms: Math.round(ms),
      requestId: request.id,
      ...(apiKey && { keyId: apiKey.id }),
      ...(createdIds?.length && { created: createdIds }),
    };
    if (quiet.test(route)) this.logger.debug('request', line);
    else this.logger.log('request', line);
  }
}
