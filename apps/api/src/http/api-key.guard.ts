import { type ApiKeyScope, ForbiddenError, UnauthorizedError } from '@app/domain';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { ApiKeysService } from './api-keys.service';
import { isPublic, neededScope } from './caller.decorator';
import { type Rate, RateLimiter } from './rate-limiter';

/** These change nothing: the scope `read` is enough. */
const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Admits requests with a valid Bearer key that is within its rate and has the scope. Guards every route except the
 * public ones.
 */
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
    const key = await this.apiKeys.authenticate(token);
    const rate = await this.rates.take(key);
    if (rate) setRateHeaders(rate, response);
    if (rate?.refusal) throw rate.refusal;
    if (!key.has(scope)) throw scopeMissing(scope);
    request.apiKey = key;
    return true;
  }
}

function setRateHeaders({ limit, remaining, resetSeconds }: Rate, response: Response): void {
  response.setHeader('RateLimit-Limit', String(limit));
  response.setHeader('RateLimit-Remaining', String(remaining));
  response.setHeader('RateLimit-Reset', String(resetSeconds));
}

/** @returns the refusal of a key without a scope. */
export const scopeMissing = (scope: ApiKeyScope): ForbiddenError =>
  new ForbiddenError(
    'ScopeMissing',
    `This needs the scope "${scope}", which this API key lacks. Use a key that has it; the service's operator makes one.`,
  );
