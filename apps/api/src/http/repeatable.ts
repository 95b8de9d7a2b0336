import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { fingerprintOf } from './idempotency.interceptor';

/** A request that may be the repeat of one whose answer did not arrive. */
export interface Repeatable {
  /** SHA-256 of its target and its content; call it when that has come. */
  fingerprint: () => string;
  /** Whether an `Idempotency-Key` tells already what is a repeat. */
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
