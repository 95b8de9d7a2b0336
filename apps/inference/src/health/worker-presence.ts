import { LiveWorkers } from '@app/image-tasks';
import { JsonLogger } from '@app/observability';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Engines } from '../engine/engines';

/** Announces to the api processes that this worker is up and what it draws on. */
@Injectable()
export class WorkerPresence implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private presence?: { leave(): Promise<void> };

  constructor(
    private readonly dataSource: DataSource,
    private readonly engines: Engines,
    private readonly logger: JsonLogger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.presence = await new LiveWorkers(this.dataSource).join(this.engines.devices, (error) =>
      this.logger.warnSparingly('the worker could not send its heartbeat', { reason: String(error) }),
    );
  }

  /** If this fails, the row expires by itself. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.presence?.leave().catch(() => undefined);
  }
}
