import { JsonLogger } from '@app/logging';
import { recountStored } from '@app/queue';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { UploadsService } from './uploads.service';

const everyMs = 10 * 60_000;
/** Each key is compared once a day, so many in one round. */
const recountHours = 24;
const roundSize = 50;

/** Compares what keys are said to have stored with the rows of their files: a count that went wrong comes right within a day. */
@Injectable()
export class StorageUseSweeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer?: NodeJS.Timeout;
  private round?: Promise<unknown>;

  constructor(
    private readonly dataSource: DataSource,
    private readonly uploads: UploadsService,
    private readonly logger: JsonLogger,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.round ??= this.sweep()
        .catch((error: Error) => this.logger.warn('sweep of storage counts failed', { reason: error.message }))
        .finally(() => (this.round = undefined));
    }, everyMs).unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.round;
  }

  /** @returns how many counts were wrong. */
  async sweep(agoHours = recountHours): Promise<number> {
    await this.uploads.removeDead();
    const wrong = await recountStored((work) => this.dataSource.transaction(work), this.dataSource, {
      most: roundSize,
      agoHours,
    });
    if (wrong > 0) this.logger.warn('counts of stored bytes were wrong', { keys: wrong });
    return wrong;
  }
}
