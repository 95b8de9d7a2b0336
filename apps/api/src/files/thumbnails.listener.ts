import { changeChannel } from '@app/tasks';
import type { BeforeApplicationShutdown } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { Notifications } from '../http/notifications';
import { ThumbnailsService } from './thumbnails.service';

/**
 * Makes thumbnails as soon as the picture that they wait for is there. The sweeper makes those of missed notifications.
 */
@Injectable()
export class ThumbnailsListener implements BeforeApplicationShutdown {
  private readonly running = new Set<Promise<void>>();
  private readonly end = new AbortController();

  constructor(thumbnails: ThumbnailsService, notifications: Notifications) {
    notifications.on(changeChannel, (id) => {
      if (this.end.signal.aborted) return;
      const work = thumbnails.makeForPrompt(id, this.end.signal).finally(() => this.running.delete(work));
      this.running.add(work);
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.end.abort();
    await Promise.all(this.running);
  }
}
