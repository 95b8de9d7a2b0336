import { type ApiKey, type ApiKeyScope, UnauthorizedError } from '@app/domain';
import type { StorageRow } from '@app/tasks';
import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';

/** The key of a request, and its storage use at that time; one row has both. */
export interface CallerKey extends ApiKey {
  readonly storage: StorageRow;
}

declare module 'express-serve-static-core' {
  interface Request {
    /** The caller, on every route that is not public. */
    apiKey?: CallerKey;
  }
}

export const isPublic = 'isPublic';

/** Lets everyone in: health checks, documents, pictures. */
export const Public = () => SetMetadata(isPublic, true);

export const neededScope = 'neededScope';

/** For a route that needs more than the scope of its method. */
export const NeedsScope = (scope: ApiKeyScope) => SetMetadata(neededScope, scope);

/** The caller's key, for routes that need more than its id. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): CallerKey => callerOf(context));

/** The caller's account, whose records the request finds. */
export const AccountId = createParamDecorator(
  (_: unknown, context: ExecutionContext): string => callerOf(context).accountId,
);

/** The caller's id, which is charged for what the request makes. */
export const OwnerId = createParamDecorator((_: unknown, context: ExecutionContext): string => callerOf(context).id);

/** @throws UnauthorizedError on a public route, which has none. */
export function callerOf(context: ExecutionContext): CallerKey {
  const { apiKey } = context.switchToHttp().getRequest<{ apiKey?: CallerKey }>();
  if (!apiKey) throw new UnauthorizedError();
  return apiKey;
}
