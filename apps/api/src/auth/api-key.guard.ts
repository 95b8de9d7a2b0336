import type { ApiKeyScope } from '@app/domain';
import { ForbiddenError, UnauthorizedError } from '@app/domain';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { createParamDecorator, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { ApiKeysService } from './api-keys.service';
import type { CallerKey } from './caller-key';
import type { Rate } from './rate-limiter';
import { RateLimiter } from './rate-limiter';

declare module 'express-serve-static-core' {
  interface Request {
    /** The caller, on every route that is not public. */
    apiKey?: CallerKey;
  }
}

const isPublic = 'isPublic';

/** Lets everyone in: health checks, documents, pictures. */
export const Public = () => SetMetadata(isPublic, true);

const checksKeyItself = 'checksKeyItself';

/** For a route that writes nothing for a revoked key, because its statement checks the key as well. */
export const ChecksKeyItself = () => SetMetadata(checksKeyItself, true);

const neededScope = 'neededScope';

/** For a route that needs more than the scope of its method. */
export const NeedsScope = (scope: ApiKeyScope) => SetMetadata(neededScope, scope);

/** The caller's key, for routes that need more than its id. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): CallerKey => callerOf(context));

/** The caller's id, which owns what the request makes and finds. */
export const OwnerId = createParamDecorator((_: unknown, context: ExecutionContext): string => callerOf(context).id);

/** @throws UnauthorizedError on a public route, which has none. */
export function callerOf(context: ExecutionContext): CallerKey {
  const { apiKey } = context.switchToHttp().getRequest<Request>();
  if (!apiKey) throw new UnauthorizedError();
  return apiKey;
}

/** Methods that change nothing; the scope `read` is enough for them. */
const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Admits requests with a valid Bearer key that is within its rate and has the scope. Guards every route except the public ones. */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly apiKeys: ApiKeysService,
    private readonly rates: RateLimiter,
  ) {}

  /** @throws UnauthorizedError, TooManyError or ForbiddenError, in this order. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.reflector.getAllAndOverride<boolean>(isPublic, [context.getHandler(), context.getClass()])) return true;
    const request = context.switchToHttp().getRequest<Request>();
    const [scheme, token, ...rest] = (request.headers.authorization ?? '').split(' ');
    if (scheme.toLowerCase() !== 'bearer' || !token || rest.length > 0) throw new UnauthorizedError();
    const response = context.switchToHttp().getResponse<Response>();
    const ofMethod = readMethods.has(request.method) ? 'read' : 'write';
    const scope =
      this.reflector.getAllAndOverride<ApiKeyScope | undefined>(neededScope, [
        context.getHandler(),
        context.getClass(),
      ]) ?? ofMethod;
    const isFresh = scope !== 'read' && !this.reflector.get<boolean>(checksKeyItself, context.getHandler());
    const key = await this.apiKeys.authenticate(token, isFresh);
    if (isFresh) response.once('close', () => this.apiKeys.forget(key));
    const rate = await this.rates.take(key);
    if (rate) tellRate(rate, response);
    if (rate?.refusal) throw rate.refusal;
    if (!key.has(scope)) throw new ForbiddenError('ScopeMissing', `This needs an API key with the scope "${scope}".`);
    request.apiKey = key;
    return true;
  }
}

function tellRate({ limit, remaining, resetSeconds }: Rate, response: Response): void {
  response.setHeader('RateLimit-Limit', String(limit));
  response.setHeader('RateLimit-Remaining', String(remaining));
  response.setHeader('RateLimit-Reset', String(resetSeconds));
}
