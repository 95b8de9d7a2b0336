import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { fingerprintOf } from './idempotency.interceptor';

/** A request that may repeat one whose answer did not arrive. */
export interface Repeatable {
  /** SHA-256 of its target and its content; call it when the body has arrived. */
  fingerprint: () => string;
  /** Whether it has an `Idempotency-Key`, which already identifies repeats. */
  hasKey: boolean;
}

export const repeatableOf = (request: Request): Repeatable => ({
  fingerprint: () => fingerprintOf(request.method, request.originalUrl, request.body),
  hasKey: request.headers['idempotency-key'] !== undefined,
});

/** The request, as far as its repeats are concerned. */
export const Repeats = createParamDecorator((_: unknown, context: ExecutionContext): Repeatable =>
  repeatableOf(context.switchToHttp().getRequest<Request>()),
);
