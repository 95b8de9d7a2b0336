import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { LongRequests } from '../long-requests/long-requests';
import { EventStream, startStream } from './event-stream';
import { hasHadEnd } from './frames';
import type { FollowedTask } from './task-feed';
import { TaskFeed } from './task-feed';

/** Opens event streams. */
@Injectable()
export class EventsService {
  constructor(
    private readonly feed: TaskFeed,
    private readonly longRequests: LongRequests,
  ) {}

  /**
   * Answers with a stream, or with 204 where its client has had the end: an EventSource then stops.
   * @throws TooManyOpenError; what reading the record throws, for what is unknown or another caller's.
   */
  async open(ownerId: string, task: FollowedTask, request: Request, response: Response): Promise<void> {
    const lastEventId = request.header('last-event-id');
    const stream = new EventStream(response, lastEventId);
    if (request.method !== 'HEAD')
      this.longRequests.add(ownerId, response, 'event stream', () =>
        response.headersSent ? stream.end() : response.destroy(),
      );
    await task.readRecord();
    if (hasHadEnd(lastEventId) && (await this.feed.hasTerminated(task.id))) {
      response.status(204).end();
      return;
    }
    if (response.closed) return;
    if (request.method === 'HEAD') {
      startStream(response);
      response.end();
      return;
    }
    stream.start();
    response.once('close', this.feed.follow(task, stream));
  }
}
