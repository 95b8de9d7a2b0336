import { JsonLogger } from '@app/logging';
import { recountStored } from '@app/queue';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { UploadsService } from './uploads.service';

const everyMs = 10 * 60_000;
/** Each key is compared once a day, so many at a time. */
const recountHours = 24;
const batchSize = 50;

/**
 * Compares what keys are said to have stored with the rows of their files: a count that went wrong comes right within a day, and what
 * was stored by a version that did not count is counted at the first start.
 */
@Injectable()
export class StorageUseSweeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopping = new AbortController();
  private timer?: NodeJS.Timeout;
  private round?: Promise<unknown>;

  constructor(
    private readonly dataSource: DataSource,
    private readonly uploads: UploadsService,
    private readonly logger: JsonLogger,
  ) {}

  onApplicationBootstrap(): void {
    const start = () => {
      this.round ??= this.sweepAll()
        .catch(({ message }: Error) => {
          if (!this.stopping.signal.aborted) this.logger.warn('sweep of storage counts failed', { reason: message });
        })
        .finally(() => (this.round = undefined));
    };
    this.timer = setInterval(start, everyMs).unref();
    start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await this.round;
  }

  /** Batch after batch, until none is due. */
  private async sweepAll(): Promise<void> {
    while ((await this.sweepSome()).compared === batchSize) if (this.stopping.signal.aborted) return;
  }

  /** @returns how many counts were wrong. */
  async sweep(agoHours = recountHours): Promise<number> {
    return (await this.sweepSome(agoHours)).wrong;
  }

  private async sweepSome(agoHours = recountHours): Promise<{ compared: number; wrong: number }> {
    await this.uploads.removeDead();
    const { signal } = this.stopping;
    const swept = await recountStored(this.dataSource, { most: batchSize, agoHours, signal });
    if (swept.wrong > 0) this.logger.warn('counts of stored bytes were wrong', { keys: swept.wrong });
    return swept;
  }
}
