import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { finalize } from 'rxjs';
import type { RequestWeight } from './request-turns';
import { RequestTurns } from './request-turns';

/** Lets the requests of a key be served when it is their turn. A body has been read by then, so that no slow sender has a turn. */
@Injectable()
export class RequestTurnsInterceptor implements NestInterceptor {
  constructor(private readonly turns: RequestTurns) {}

  /** @throws TooManyRequestsError */
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<Request>();
    const { apiKey } = request;
    if (!apiKey) return next.handle();
    const response = context.switchToHttp().getResponse<Response>();
    await this.turns.take(apiKey.id, response, weightOf(request));
    return next.handle().pipe(finalize(() => this.turns.end(response)));
  }
}

/** A body without a length, or with more than this, is heavy. */
const lightBytes = 16 * 1024;

function weightOf({ method, headers, route }: Request): RequestWeight {
  if (method === 'GET') return (route as { path: string }).path.endsWith('/:id') ? 'light' : 'heavy';
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= lightBytes
    ? 'light'
    : 'heavy';
}
