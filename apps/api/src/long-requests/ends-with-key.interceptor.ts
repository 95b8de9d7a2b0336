import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Observable, race } from 'rxjs';
import { UnauthorizedError } from '../http/http-errors';
import { LongRequests } from './long-requests';

/** Answers 401 in the middle of a request that takes long, and stops reading it, when its key is revoked. */
@Injectable()
export class EndsWithKey implements NestInterceptor {
  constructor(private readonly requests: LongRequests) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<Request>();
    const response = context.switchToHttp().getResponse<Response>();
    const { apiKey } = request;
    if (!apiKey) return next.handle();
    const revoked = new Observable<never>((subscriber) =>
      this.requests.add(apiKey.id, response, 'upload', () => {
        response.once('finish', () => request.destroy());
        subscriber.error(new UnauthorizedError());
      }),
    );
    return race(revoked, next.handle());
  }
}
