import { join } from 'node:path';
import type { Config } from '@app/config';
import { CONFIG, RecurringService } from '@app/foundation';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import { mergesIn, pruneMerged } from '../engine/models/merge-cache';

const intervalMs = 3_600_000;

/**
 * Deletes merged models of this machine that are no longer used, also where nothing is merged any more. Each process
 * does it, because each may have a cache of its own; two at once do no harm.
 */
@Injectable()
export class MergeSweeper extends RecurringService {
  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'dataDir' | 'mergedCacheMb'>,
    logger: JsonLogger,
  ) {
    super(logger);
    this.repeat({ intervalMs, failure: 'the sweep of merged models failed', work: () => this.sweep() });
  }

  async sweep(): Promise<void> {
    await pruneMerged(mergesIn(join(this.config.dataDir, 'cache')), this.config.mergedCacheMb * 2 ** 20);
  }
}
