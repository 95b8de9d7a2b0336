import { Recurring } from '@app/config';
import { JsonLogger } from '@app/logging';
import { recountStored } from '@app/queue';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { UploadsService } from './uploads.service';

const intervalMs = 10 * 60_000;
/** Each key is compared once a day, so many in one round. */
const recountHours = 24;
const roundSize = 50;

/** Compares what keys are said to have stored with the rows of their files: a count that went wrong comes right within a day. */
@Injectable()
export class StorageUseSweeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly rounds: Recurring;

  constructor(
    private readonly dataSource: DataSource,
    private readonly uploads: UploadsService,
    private readonly logger: JsonLogger,
  ) {
    this.rounds = new Recurring({
      intervalMs,
      work: () => this.sweep(),
      onError: ({ message }) => this.logger.warnSparingly('sweep of storage counts failed', { reason: message }),
    });
  }

  onApplicationBootstrap(): void {
    this.rounds.start();
  }

  /** Ends before the database connection does. */
  beforeApplicationShutdown(): Promise<void> {
    return this.rounds.stop();
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
