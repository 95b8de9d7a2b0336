import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { finalize } from 'rxjs';
import { RequestTurns } from './request-turns';

/** Lets the requests of a key be served when it is their turn. A body has been read by then, so that no slow sender has a turn. */
@Injectable()
export class RequestTurnsInterceptor implements NestInterceptor {
  constructor(private readonly turns: RequestTurns) {}

  /** @throws TooManyRequestsError */
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const { apiKey } = context.switchToHttp().getRequest<Request>();
    if (!apiKey) return next.handle();
    const response = context.switchToHttp().getResponse<Response>();
    await this.turns.take(apiKey.id, response);
    return next.handle().pipe(finalize(() => this.turns.end(response)));
  }
}
