import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import type { Observable } from 'rxjs';
import { tap } from 'rxjs';

/** Notes which records a POST made, so that its log line leads to theirs in other processes. */
@Injectable()
export class CreatedRecordsInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<Request>();
    if (request.method !== 'POST') return next.handle();
    return next.handle().pipe(
      tap((body) => {
        request.createdIds = [body].flat().flatMap((record) => {
          const id = (record as { id?: unknown } | undefined)?.id;
          return typeof id === 'string' ? [id] : [];
        });
      }),
    );
  }
}
