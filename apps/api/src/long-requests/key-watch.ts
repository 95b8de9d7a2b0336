import { ApiKey } from '@app/domain';
import { JsonLogger } from '@app/logging';
import { ImageTaskLifeCycle, keyChannel } from '@app/queue';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, Not, Repository } from 'typeorm';
import { Notifications } from '../infrastructure/notifications';
import { LongRequests } from './long-requests';

/** A notification that was missed is made good after this. */
const intervalMs = 3_000;

/**
 * Ends what a revoked key has open in this process, and cancels what it has waiting. A notification says when to look, the row
 * says what is so.
 */
@Injectable()
export class KeyWatch implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer?: NodeJS.Timeout;
  private looking?: Promise<void>;
  private again = false;
  private closed = false;

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    private readonly requests: LongRequests,
    private readonly lifeCycle: ImageTaskLifeCycle,
    notifications: Notifications,
    private readonly logger: JsonLogger,
  ) {
    notifications.on(keyChannel, () => void this.look());
  }

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.look(), intervalMs).unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.closed = true;
    clearInterval(this.timer);
    await this.looking;
  }

  /** One look at a time; what is heard of during one leads to another. */
  look(): Promise<void> {
    if (this.looking) {
      this.again = true;
      return this.looking;
    }
    this.looking = this.lookUntilQuiet().finally(() => (this.looking = undefined));
    return this.looking;
  }

  private async lookUntilQuiet(): Promise<void> {
    do {
      this.again = false;
      try {
        await this.endRequests();
        await this.cancelTasks();
      } catch (error) {
        this.logger.warn('the API keys could not be looked at', { reason: (error as Error).message });
      }
    } while (this.again && !this.closed);
  }

  private async endRequests(): Promise<void> {
    const owners = this.requests.owners();
    if (owners.length === 0) return;
    const revoked = await this.apiKeys.find({
      select: { id: true },
      where: { id: In(owners), revokedAt: Not(IsNull()) },
    });
    for (const { id } of revoked)
      this.logger.log('requests of a revoked key ended', { keyId: id, requests: this.requests.endAll(id) });
  }

  /** Who revokes a key cancels its tasks as well; what is left is what came in at that moment, or an end half-way. */
  private async cancelTasks(): Promise<void> {
    const owners = await this.apiKeys.query<{ id: string }[]>(
      `SELECT id FROM api_keys WHERE revoked_at IS NOT NULL AND EXISTS (
         SELECT FROM image_tasks WHERE owner_id = api_keys.id AND status IN ('queued', 'processing')
       )`,
    );
    for (const { id } of owners) {
      if (this.closed) return;
      const canceled = await this.lifeCycle.cancelAll(id);
      this.logger.log('tasks of a revoked key canceled', { keyId: id, canceled });
    }
  }
}
