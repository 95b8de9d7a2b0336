import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { serviceVersion } from '@app/process';
import type { Request, RequestHandler } from 'express';
import helmet from 'helmet';
import type { NestExpressApplication } from '@nestjs/platform-express';

declare module 'express-serve-static-core' {
  interface Request {
    /** Identifies the request in its response, in errors and in the logs. */
    id: string;
  }
}

/** Middleware: names the request, and sets the headers that every answer has, errors included. */
export function responseHeaders(publicUrl: string): RequestHandler {
  const securityHeaders = securityHeadersOf(publicUrl);
  return (request, response, next) => {
    // The caller's own name for the request, where it is a plain word.
    const given = request.header('x-request-id');
    request.id = given && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : randomUUID();
    response.setHeader('X-Request-Id', request.id);
    response.setHeader('X-Darkroom-Version', serviceVersion);
    for (const [name, value] of securityHeaders) response.setHeader(name, value);
    // No cache, shared or the browser's own, keeps answers about a caller's records. Routes ignore the case of a path.
    if (/^\/v1(?:\/|$)/i.test(request.path)) response.setHeader('Cache-Control', 'private, no-store');
    next();
  };
}

type HeaderList = readonly (readonly [name: string, value: string])[];

/**
 * Headers that make a browser run and load only our own files; computed once, because they are the same for every
 * request. TLS is the proxy's business: only if `publicUrl` is https is a browser told to use HTTPS, for this host
 * alone.
 */
function securityHeadersOf(publicUrl: string): HeaderList {
  const setHeaders = helmet({
    contentSecurityPolicy: {
      directives: { 'style-src': ["'self'"], 'frame-ancestors': ["'none'"], 'upgrade-insecure-requests': null },
    },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: publicUrl.startsWith('https:') && { includeSubDomains: false },
  });
  const headers: [string, string][] = [];
  const response = {
    setHeader: (name: string, value: string) => headers.push([name, value]),
    removeHeader: () => undefined,
  };
  setHeaders({} as IncomingMessage, response as unknown as ServerResponse, (error?: unknown) => {
    if (error) throw error as Error;
  });
  return headers;
}

const options = {
  methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
  allowedHeaders: [
    ...['Authorization', 'Content-Type', 'Idempotency-Key', 'If-None-Match', 'Last-Event-ID', 'Prefer'],
    ...['X-Request-Id'],
  ],
  exposedHeaders: [
    ...[
      'Content-Disposition',
      'ETag',
      'Idempotency-Replayed',
      'Link',
      'Location',
      'Preference-Applied',
      'RateLimit-Limit',
    ],
    ...['RateLimit-Remaining', 'RateLimit-Reset', 'Retry-After', 'X-Darkroom-Model', 'X-Darkroom-Version'],
    ...['X-Generation-Id', 'X-Request-Id'],
  ],
  // A key is sent by the page itself, never by the browser.
  credentials: false,
  maxAge: 600,
};

/**
 * Lets pages of these origins call the routes of `/v1` and read pictures. Everything else stays closed to other
 * origins.
 */
export function allowCrossOrigin(app: NestExpressApplication, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const origin = origins.includes('*') ? '*' : [...origins];
  const isCovered = ({ path }: Request): boolean => /^\/(?:v1|images)(?:\/|$)/i.test(path);
  app.enableCors((request: Request, callback: (error: Error | null, found: object) => void) =>
    callback(
      null,
      isCovered(request) ? { ...options, allowedHeaders: allowedHeaders(request), origin } : { origin: false },
    ),
  );
}

/**
 * Ours, and those that a preflight asks for: clients send headers of their own, such as OpenAI's `x-stainless-*`, and
 * none of them lets anybody in.
 */
function allowedHeaders(request: Request): string[] {
  const asked = (request.header('access-control-request-headers') ?? '').split(',').map((name) => name.trim());
  return [...options.allowedHeaders, ...asked.filter((name) => /^[\w!#$%&'*+.^`|~-]+$/.test(name))];
}

/**
 * Whether an `If-None-Match` header names an ETag. Express heeds `Cache-Control: no-cache` as well, which every `fetch`
 * sends with it.
 */
export function namesEtag(header: string | undefined, etag: string): boolean {
  const named = (header ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''));
  return named.includes(etag) || named.includes('*');
}
