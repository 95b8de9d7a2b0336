import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request } from 'express';

const options = {
  methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
  allowedHeaders: [
    ...['Authorization', 'Content-Type', 'Idempotency-Key', 'If-None-Match', 'Last-Event-ID', 'Prefer'],
    ...['X-Request-Id'],
  ],
  exposedHeaders: [
    ...['ETag', 'Idempotency-Replayed', 'Link', 'Location', 'Preference-Applied', 'RateLimit-Limit'],
    ...['RateLimit-Remaining', 'RateLimit-Reset', 'Retry-After', 'X-Generation-Id'],
    'X-Request-Id',
  ],
  // A key is sent by the page itself, never by the browser.
  credentials: false,
  maxAge: 600,
};

/**
 * Lets pages of these origins call the routes of `/v1` and read pictures; all others, and all else, are
 * as if nothing were set.
 */
export function allowCrossOrigin(app: NestExpressApplication, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const origin = origins.includes('*') ? '*' : [...origins];
  const isCovered = ({ path }: Request): boolean => /^\/(?:v1|images)(?:\/|$)/i.test(path);
  app.enableCors((request: Request, callback: (error: Error | null, found: object) => void) =>
    callback(null, isCovered(request) ? { ...options, origin } : { origin: false }),
  );
}
