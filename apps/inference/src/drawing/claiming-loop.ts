import { setMaxListeners } from 'node:events';
import { ClockWatch } from '@app/database';
import type { Task } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { PollLoop } from '@app/process';
import { WakeUps } from '@app/queue';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { PictureCredentials } from '../pictures/picture-credentials';
import { StorageHealth } from '../pictures/storage-health';
import type { OwnerShares } from './owner-shares';

/** What every loop that claims tasks needs. */
@Injectable()
export class ClaimingParts {
  constructor(
    readonly clock: ClockWatch,
    readonly wakeUps: WakeUps,
    readonly storage: StorageHealth,
    readonly credentials: PictureCredentials,
    readonly logger: JsonLogger,
  ) {}
}

/** Claims tasks as long as owners may have more of them here, and works on them until the process ends. */
export abstract class ClaimingLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  protected readonly shutdown = new AbortController();
  protected readonly loop: PollLoop;

  constructor(
    protected readonly parts: ClaimingParts,
    protected readonly shares: OwnerShares,
    private readonly isWanted = true,
  ) {
    // Every task listens, and there are more of them than Node expects.
    setMaxListeners(0, this.shutdown.signal);
    this.loop = new PollLoop(
      () => this.claim(),
      ({ message }) => parts.logger.warnSparingly('no task could be claimed', { reason: message }),
    );
  }

  /** Claims a task and begins to work on it. @returns whether there may be more */
  protected abstract claim(): Promise<boolean>;

  onApplicationBootstrap(): void {
    if (!this.isWanted) return;
    this.parts.wakeUps.listen(() => this.loop.wake());
    this.loop.start();
  }

  /** Stops claiming, and gives back what is under way. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
    this.shutdown.abort();
    await this.loop.finished();
  }

  protected async mayClaim(): Promise<boolean> {
    const { clock, storage } = this.parts;
    return clock.agrees && (await storage.isWritable());
  }

  /** Pictures have to be signed; what is trained has not. */
  protected async mayDraw(): Promise<boolean> {
    return (await this.mayClaim()) && (await this.parts.credentials.mayDraw());
  }

  /** @param end called when the work has ended, whatever came of it */
  protected track({ id: taskId }: Task, work: Promise<unknown>, end: () => void): void {
    this.loop.track(
      work
        // Its heartbeats have ended, so the sweep finds it.
        .catch((error: Error) => this.parts.logger.error('the outcome could not be written', { taskId }, error))
        .then(end),
    );
  }
}
