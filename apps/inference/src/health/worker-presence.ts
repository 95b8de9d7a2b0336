import { LiveWorkers, type Presence } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { BrokenModels } from '../drawing/broken-models';
import { WorkerModels } from '../drawing/worker-models';
import { Engines } from '../engine-client/engines';
import { reportOf } from './engine-report';

/** Announces to the api processes that this worker is up, and what it can draw. */
@Injectable()
export class WorkerPresence implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private presence?: Presence;

  constructor(
    private readonly workers: LiveWorkers,
    private readonly engines: Engines,
    private readonly models: WorkerModels,
    private readonly broken: BrokenModels,
    private readonly logger: JsonLogger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { devices } = this.engines;
    this.presence = await this.workers.join(
      () => ({
        devices,
        models: this.models.drawableOn(devices),
        engines: this.engines.states.map(reportOf),
        broken: this.broken.list(),
      }),
      (error) => this.logger.warnSparingly('the worker could not send its heartbeat', { reason: String(error) }),
    );
  }

  /** Whether no other live worker has been up for longer. */
  async isEldest(): Promise<boolean> {
    return (await this.presence?.isEldest()) ?? false;
  }

  /** If this fails, the row expires by itself. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.presence?.leave().catch(() => undefined);
  }
}
