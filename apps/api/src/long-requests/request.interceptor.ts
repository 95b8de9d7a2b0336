import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { finalize, tap } from 'rxjs';
import { idsIn } from '../http/ids-in';
import { JsonBody } from '../http/json-body';
import type { RequestWeight } from './request-turns';
import { RequestTurns } from './request-turns';

/** A body without a length, or with more than this, is heavy. */
const lightBytes = 16 * 1024;

/**
 * What every request goes through between the guards and its route: its body is read, then it waits for its key's turn, so that no
 * slow sender has one, and afterwards the records that it made are noted. One interceptor, for each takes time of every request.
 */
@Injectable()
export class RequestInterceptor implements NestInterceptor {
  constructor(private readonly turns: RequestTurns) {}

  /** @throws TooManyRequestsError, and what `JsonBody` throws */
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<Request>(), http.getResponse<Response>()];
    await JsonBody.read(request, response);
    const { apiKey, method } = request;
    if (!apiKey) return next.handle();
    await this.turns.take(apiKey.id, response, weightOf(request));
    const answer = next.handle().pipe(finalize(() => this.turns.end(response)));
    return method === 'POST' ? answer.pipe(tap((body) => (request.createdIds = idsIn(body)))) : answer;
  }
}

function weightOf({ method, headers, route }: Request): RequestWeight {
  if (method === 'GET') return (route as { path: string }).path.endsWith('/:id') ? 'light' : 'heavy';
  const isSmall = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= lightBytes;
  return isSmall ? 'light' : 'heavy';
}
