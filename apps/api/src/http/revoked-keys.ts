import { ApiKey, keyChannel } from '@app/domain';
import { RecurringService } from '@app/process';
import { Tasks } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, Not, Repository } from 'typeorm';
import { OpenRequests } from '../defence/open-requests';
import { Notifications } from './notifications';

/** A check that may be requested at any time: one runs at a time, and requests during one lead to another. */
export class CheckLoop {
  private readonly stopping = new AbortController();
  private running?: Promise<void>;
  private isRequested = false;

  /**
   * @param check runs one check. `signal` aborts at the end of the process: a long check then finishes
   * only its current item.
   */
  constructor(private readonly check: (signal: AbortSignal) => Promise<void>) {}

  /** Rejects with the error of a check; no other begins after that, or after `stop`. */
  request(): Promise<void> {
    this.isRequested = true;
    return (this.running ??= this.checkWhileRequested());
  }

  /** Resolves when the current check has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running?.catch(() => undefined);
  }

  private async checkWhileRequested(): Promise<void> {
    try {
      while (this.isRequested && !this.stopping.signal.aborted) {
        this.isRequested = false;
        await this.check(this.stopping.signal);
      }
    } finally {
      this.running = undefined;
    }
  }
}

/** Time until a missed notification is made up for. */
const intervalMs = 3_000;
const failure = 'the API keys could not be checked';

/**
 * Ends the open requests of a revoked key in this process, and cancels its waiting tasks. A notification says when to
 * check; the row decides.
 */
@Injectable()
export class RevokedKeys extends RecurringService {
  /** Canceling many tasks of one key takes a while, and must not delay the end of others' requests. */
  private readonly loops: readonly CheckLoop[];

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeys: Repository<ApiKey>,
    private readonly requests: OpenRequests,
    private readonly tasks: Tasks,
    notifications: Notifications,
    logger: JsonLogger,
  ) {
    super(logger);
    this.loops = [new CheckLoop(() => this.endRequests()), new CheckLoop((signal) => this.cancelTasks(signal))];
    for (const loop of this.loops) this.repeat({ intervalMs, failure, work: () => loop.request() });
    notifications.on(keyChannel, () => {
      for (const loop of this.loops)
        loop.request().catch(({ message }: Error) => this.logger.warnSparingly(failure, { reason: message }));
    });
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([super.beforeApplicationShutdown(), ...this.loops.map((loop) => loop.stop())]);
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

  /**
   * Revoking a key cancels its tasks as well; here are only tasks that came at that moment, or after an interruption.
   * Keys take turns, a batch at a time.
   */
  private async cancelTasks(signal: AbortSignal): Promise<void> {
    const canceled = new Map<string, number>();
    try {
      for (let some = true; some;) {
        some = false;
        const owners = await this.apiKeys.query<{ id: string }[]>(
          `SELECT id FROM api_keys WHERE revoked_at IS NOT NULL AND EXISTS (
             SELECT FROM image_tasks WHERE owner_id = api_keys.id AND status IN ('queued', 'processing')
           )`,
        );
        for (const { id } of owners) {
          if (signal.aborted) return;
          const count = await this.tasks.cancelBatch(id);
          if (count === 0) continue;
          canceled.set(id, (canceled.get(id) ?? 0) + count);
          some = true;
        }
      }
    } finally {
      for (const [keyId, count] of canceled)
        this.logger.log('tasks of a revoked key canceled', { keyId, canceled: count });
    }
  }
}
