import { join } from 'node:path';
import { type Config, CONFIG } from '@app/config';
import { Finetune } from '@app/domain';
import { RecurringService } from '@app/process';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, In } from 'typeorm';
import { mergesIn } from '../engine/models/merge-cache';
import { discardOrphans, pruneMerged } from '../engine/models/merge-pruning';

const intervalMs = 10 * 60_000;

/**
 * Deletes merged models of this machine that are no longer used or whose weights no Fine-Tune has any more, also where
 * nothing is merged now. Each process does it, because each may have a cache of its own; two at once do no harm.
 */
@Injectable()
export class MergeSweeper extends RecurringService {
  private readonly merges: string;

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'dataDir' | 'mergedCacheMb'>,
    private readonly dataSource: DataSource,
    logger: JsonLogger,
  ) {
    super(logger);
    this.merges = mergesIn(join(config.dataDir, 'cache'));
    this.repeat({ intervalMs, failure: 'the sweep of merged models failed', work: () => this.sweep() });
  }

  async sweep(): Promise<void> {
    await pruneMerged(this.merges, this.config.mergedCacheMb * 2 ** 20);
    await discardOrphans(this.merges, async (hashes) => {
      const where = { weightsHash: In(hashes) };
      const found = await this.dataSource.manager.find(Finetune, { select: { weightsHash: true }, where });
      return new Set(found.map(({ weightsHash }) => weightsHash!));
    });
  }
}
