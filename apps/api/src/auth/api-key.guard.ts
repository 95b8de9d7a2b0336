import type { ApiKey } from '@app/domain';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { createParamDecorator, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { UnauthorizedError } from '../http/http-errors';
import { ApiKeysService } from './api-keys.service';

declare module 'express-serve-static-core' {
  interface Request {
    /** The caller, on every route that is not public. */
    apiKey?: ApiKey;
  }
}

const isPublic = 'isPublic';

/** Lets everyone in: health checks, documents, pictures. */
export const Public = () => SetMetadata(isPublic, true);

/** The caller's id, which owns what the request makes and finds. */
export const OwnerId = createParamDecorator((_: unknown, context: ExecutionContext): string => caller(context).id);

/** The caller's key. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext): ApiKey => caller(context));

function caller(context: ExecutionContext): ApiKey {
  const { apiKey } = context.switchToHttp().getRequest<Request>();
  if (!apiKey) throw new UnauthorizedError();
  return apiKey;
}

/** Admits requests with a Bearer key that exists and is not revoked. Guards every route but the public ones. */
@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly apiKeys: ApiKeysService,
  ) {}

  /** @throws UnauthorizedError */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.reflector.getAllAndOverride<boolean>(isPublic, [context.getHandler(), context.getClass()])) return true;
    const request = context.switchToHttp().getRequest<Request>();
    const [scheme, token, ...rest] = (request.headers.authorization ?? '').split(' ');
    if (scheme.toLowerCase() !== 'bearer' || !token || rest.length > 0) throw new UnauthorizedError();
    request.apiKey = await this.apiKeys.authenticate(token);
    return true;
  }
}
