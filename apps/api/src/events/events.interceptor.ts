import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { concatMap, type Observable } from 'rxjs';
import { callerOf } from '../http/caller.decorator';
import { OpenRequests } from '../defence/open-requests';
import { endedAttempt, EventStream } from './event-stream';
import { sendStreamHead } from '../http/server-sent-events';
import { type FollowedTask, TaskFeed } from './task-feed';

/**
 * For a route that returns a `FollowedTask`: the response is a stream of its events. The route takes `@Res()` without
 * using it, so that Nest sends no response itself.
 */
export const SendsEvents = () => UseInterceptors(EventsInterceptor);

/** Opens event streams. */
@Injectable()
class EventsInterceptor implements NestInterceptor {
  constructor(
    private readonly feed: TaskFeed,
    private readonly openRequests: OpenRequests,
  ) {}

  /** @throws what `open` throws */
  intercept(context: ExecutionContext, next: CallHandler<FollowedTask>): Observable<void> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const { id: ownerId } = callerOf(context);
    return next.handle().pipe(concatMap((task) => this.open(ownerId, task, request, response)));
  }

  /**
   * Answers with a stream, or with 204 to a client that has had the end: an EventSource then stops.
   * @throws TooManyError; what reading the record throws, for one that is unknown or another caller's.
   */
  private async open(ownerId: string, task: FollowedTask, request: Request, response: Response): Promise<void> {
    const lastEventId = request.header('last-event-id');
    const stream = new EventStream(response, lastEventId);
    if (request.method !== 'HEAD')
      this.openRequests.addAndFinish(ownerId, response, 'event stream', () =>
        response.headersSent ? stream.end() : response.destroy(),
      );
    await task.readRecord();
    const attempt = endedAttempt(lastEventId);
    if (attempt !== undefined && (await this.feed.hasTerminated(task.id, attempt))) {
      response.status(204).end();
      return;
    }
    if (response.closed) return;
    if (request.method === 'HEAD') {
      sendStreamHead(response);
      response.end();
      return;
    }
    sendStreamHead(response);
    stream.start();
    response.once('close', this.feed.follow(task, stream));
  }
}
