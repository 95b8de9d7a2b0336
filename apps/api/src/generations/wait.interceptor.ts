import { isTerminated, NotFoundError, TooManyError } from '@app/domain';
import type { GenerationDto } from '@app/domain/http';
import { JsonLogger } from '@app/observability';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { Request, Response } from 'express';
import { concatMap, type Observable } from 'rxjs';
import { type CallerKey, callerOf } from '../http/caller.decorator';
import { type WaitedAnswer, type WaitedExchange, waitRuleOf } from '../http/route.decorators';
import { KeptReplies } from '../http/idempotency.interceptor';
import { repeatableOf } from '../http/repeatable';
import { OpenRequests } from '../defence/open-requests';
import { GenerationsService } from './generations.service';
import { Terminations } from './terminations';
import { Unanswered } from './unanswered';

/** The longest wait that a caller may prefer. */
export const longestWaitSeconds = 60;
/** Balancers close a connection that is silent for 60 s, so the answer is sent some seconds before. */
const longestWaitMs = 55_000;
/**
 * How often an answer on a route that always waits sends white space, so that no balancer closes its connection: as
 * late as possible, because the status is 200 from then on.
 */
const signOfLifeMs = 45_000;

/**
 * The seconds of `wait` in a `Prefer` header (RFC 7240), at most `longestWaitSeconds`, which a bare `wait` means too;
 * undefined where it is absent or no number: a preference that cannot be understood is ignored.
 */
export function preferredWait(header: string | string[] | undefined): number | undefined {
  for (const preference of [header ?? []].flat().join().split(',')) {
    const [name, value = ''] = preference.split(';')[0].split('=');
    if (name.trim().toLowerCase() !== 'wait') continue;
    const seconds = value.trim().replace(/^"(.*)"$/, '$1');
    if (seconds === '') return longestWaitSeconds;
    if (/^\d{1,9}$/.test(seconds) && Number(seconds) > 0) return Math.min(Number(seconds), longestWaitSeconds);
  }
  return undefined;
}

/** Waiting answers of all keys together, per api process. */
const maxInAll = 4_000;

/** Names the Generation in an answer whose body has no place for it. */
export const generationIdHeader = 'X-Generation-Id';

class TooManyWaitingError extends TooManyError {
  constructor(retryAfterSeconds = 10) {
    super('TooManyWaiting', 'Too many requests wait for their pictures. Try again shortly.', retryAfterSeconds);
  }
}

/**
 * Lets the answer to a request that made a Generation wait until that has terminated: as long as the caller prefers, up
 * to a minute, or always, by the route. It stands outside of everything that has a transaction open. Waiting answers
 * are counted per key and in all; where there are too many, a preference is not applied.
 */
@Injectable()
export class WaitInterceptor implements NestInterceptor {
  /** Shorter in tests. */
  static signOfLifeMs = signOfLifeMs;

  private count = 0;

  constructor(
    private readonly generations: GenerationsService,
    private readonly terminations: Terminations,
    private readonly openRequests: OpenRequests,
    private readonly modules: ModuleRef,
    private readonly replies: KeptReplies,
    private readonly unanswered: Unanswered,
    private readonly logger: JsonLogger,
  ) {}

  /** @throws TooManyError with the code TooManyWaiting, on a route that always waits */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const rule = waitRuleOf(context.getHandler());
    if (rule === undefined) return next.handle();
    const http = context.switchToHttp();
    const exchange = { request: http.getRequest<Request>(), response: http.getResponse<Response>() };
    const caller = callerOf(context);
    if (rule === 'as preferred') return this.whenPreferred(caller, exchange, next);
    return this.always(caller, exchange, next, rule);
  }

  private whenPreferred(
    { id: ownerId, accountId }: CallerKey,
    { request, response }: WaitedExchange,
    next: CallHandler,
  ): Observable<unknown> {
    const seconds = preferredWait(request.headers.prefer);
    if (seconds === undefined) return next.handle();
    return next.handle().pipe(
      concatMap(async (record: object) => {
        const ended = isGeneration(record) && this.holdIfPossible(ownerId, response);
        if (!ended) return record;
        response.setHeader('Preference-Applied', `wait=${seconds}`);
        const waitMs = Math.min(seconds * 1000, longestWaitMs);
        // The Generation is stored: after an error its caller would request another one.
        const waited = await this.wait(accountId, record, waitMs, response, ended).catch(({ message }: Error) => {
          this.logger.debug('the record could not be read after the wait', { reason: message });
          return record;
        });
        // Deleted meanwhile: answered as a GET would be.
        if (!waited) throw new NotFoundError('Generation');
        if (!response.closed) await this.keep(ownerId, request, waited);
        return waited;
      }),
    );
  }

  private always(
    { id: ownerId, accountId }: CallerKey,
    { request, response }: WaitedExchange,
    next: CallHandler,
    rule: Type<WaitedAnswer>,
  ): Observable<unknown> {
    const answer = this.modules.get<WaitedAnswer>(rule, { strict: false });
    const ended = this.hold(ownerId, response);
    return next.handle().pipe(
      concatMap(async (record: GenerationDto) => {
        response.setHeader(generationIdHeader, record.id);
        const stream = await answer.begin(record, { request, response });
        const sign = (): void => (stream ? stream.sign() : sendSignOfLife(response));
        const signs = setInterval(sign, WaitInterceptor.signOfLifeMs);
        try {
          const waited = await this.wait(accountId, record, answer.waitSeconds * 1000, response, ended);
          const body = await answer.present(waited ?? record, {
            ownerId,
            accountId,
            body: request.body,
            isDeleted: waited === undefined,
          });
          if (response.closed) return body;
          if (stream) await stream.end(body);
          else endWith(response, body);
          return body;
        } finally {
          clearInterval(signs);
          // The caller has left, or has only white space and a part of an error: its repeat gets the same Generation.
          if (response.closed || (response.headersSent && !response.writableEnded))
            await this.unanswered.leave(ownerId, repeatableOf(request), record.id);
        }
      }),
    );
  }

  /** A repeat without a preference gets the terminated record too, as the first request did. */
  private async keep(ownerId: string, { headers }: Request, record: GenerationDto): Promise<void> {
    const key = headers['idempotency-key'];
    if (typeof key !== 'string' || !isTerminated(record.status)) return;
    await this.replies
      .renew(ownerId, key, record)
      .catch((error: Error) => this.logger.debug('a kept reply was not renewed', { reason: error.message }));
  }

  private holdIfPossible(ownerId: string, response: Response): AbortSignal | undefined {
    try {
      return this.hold(ownerId, response);
    } catch (error) {
      if (error instanceof TooManyError) return undefined;
      throw error;
    }
  }

  /**
   * Counts a waiting answer until it is closed.
   * @returns a signal that aborts when the wait ends early: the caller has gone, or its key is revoked.
   * @throws TooManyError
   */
  private hold(ownerId: string, response: Response): AbortSignal {
    if (response.closed) return AbortSignal.abort();
    if (this.count >= maxInAll) throw new TooManyWaitingError();
    const ended = new AbortController();
    this.openRequests.add(ownerId, response, 'waiting answer', () => {
      // The caller gets the record as it is; its next request is refused.
      if (!response.headersSent) response.setHeader('Connection', 'close');
      ended.abort();
    });
    this.count++;
    response.once('close', () => {
      this.count--;
      ended.abort();
    });
    return ended.signal;
  }

  /**
   * Waits without the key's turn, which was taken to make the Generation.
   * @returns the record after that time; undefined if it has been deleted.
   */
  private async wait(
    accountId: string,
    record: GenerationDto,
    waitMs: number,
    response: Response,
    ended: AbortSignal,
  ): Promise<GenerationDto | undefined> {
    this.openRequests.finish(response);
    if (!isTerminated(record.status)) await this.terminations.until(record.id, waitMs, ended);
    try {
      return await this.generations.findOne(accountId, record.id);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }
}

/** White space may precede JSON. The status is 200 from then on. */
function sendSignOfLife(response: Response): void {
  if (!response.headersSent) response.type('json');
  response.write(' ');
}

function endWith(response: Response, body: object): void {
  if (response.headersSent) response.end(JSON.stringify(body));
  else response.json(body);
}

/** The route of Generations answers with a Fine-Tune if the body has no prompt. */
function isGeneration(record: object): record is GenerationDto {
  return 'num_generations' in record;
}
