import { ApiKey, keyChannel } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { PollLoop } from '@app/process';
import { Tasks } from '@app/tasks';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, Not, Repository } from 'typeorm';
import { OpenRequests } from '../defence/open-requests';
import { Notifications } from './notifications';

/**
 * Ends the open requests of a revoked key in this process, and cancels its waiting tasks. A missed notification costs a
 * second, because the rows are checked anyway.
 */
@Injectable()
export class RevokedKeys implements OnApplicationBootstrap, BeforeApplicationShutdown {
  /** Two loops: canceling many tasks of one key takes a while, and must not delay the end of others' requests. */
  private readonly loops = [() => this.endRequests(), () => this.cancelTasks()].map(
    (check) =>
      new PollLoop(check, ({ message }) =>
        this.logger.warnSparingly('the API keys could not be checked', { reason: message }),
      ),
  );

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    private readonly requests: OpenRequests,
    private readonly tasks: Tasks,
    private readonly logger: JsonLogger,
    notifications: Notifications,
  ) {
    notifications.on(keyChannel, () => {
      for (const loop of this.loops) loop.wake();
    });
  }

  onApplicationBootstrap(): void {
    for (const loop of this.loops) loop.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.stop()));
  }

  private async endRequests(): Promise<false> {
    const owners = this.requests.owners();
    const revoked =
      owners.length > 0
        ? await this.apiKeys.find({ select: { id: true }, where: { id: In(owners), revokedAt: Not(IsNull()) } })
        : [];
    for (const { id } of revoked)
      this.logger.log('requests of a revoked key ended', { keyId: id, requests: this.requests.endAll(id) });
    return false;
  }

  /**
   * Revoking a key cancels its tasks as well; left for this are tasks that came at that moment, or after an
   * interruption. Keys take turns, a batch at a time.
   * @returns whether there may be more
   */
  private async cancelTasks(): Promise<boolean> {
    const owners = await this.apiKeys.query<{ id: string }[]>(
      `SELECT id FROM api_keys WHERE revoked_at IS NOT NULL AND EXISTS (
         SELECT FROM tasks WHERE owner_id = api_keys.id AND status IN ('queued', 'processing')
       )`,
    );
    let sum = 0;
    for (const { id } of owners) {
      const canceled = await this.tasks.cancelBatch(id);
      if (canceled > 0) this.logger.log('tasks of a revoked key canceled', { keyId: id, canceled });
      sum += canceled;
    }
    return sum > 0;
  }
}
