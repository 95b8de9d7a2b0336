import { ClockWatch, probeWrite } from '@app/database';
import { ServiceUnavailableError, type SigningState } from '@app/domain';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { LiveWorkers, signingOf } from '@app/tasks';
import { WakeUps } from '@app/queue';
import {
  cached,
  type HealthChecks,
  JsonLogger,
  measureHealth,
  Metrics,
  type Readiness,
  readinessOf,
} from '@app/observability';
import { serviceVersion } from '@app/process';
import { Controller, Get, Inject } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { DataSource } from 'typeorm';
import { Public } from '../http/caller.decorator';
import { Drain } from '../http/drain';
import { DiskSpace } from '../files/disk-space';

/** A write test of a remote store costs money. */
const storageCheckMs = 15_000;
/** The database is written at most this often, however often health is requested. */
const databaseCheckMs = 1_000;

/** Whether the process is alive, and whether it can serve. */
@ApiExcludeController()
@Public()
@Controller('health')
export class HealthController {
  private readonly checks: HealthChecks;

  constructor(
    dataSource: DataSource,
    wakeUps: WakeUps,
    @Inject(IMAGE_STORAGE) storage: ImageStorage,
    clock: ClockWatch,
    disk: DiskSpace,
    private readonly workers: LiveWorkers,
    private readonly drain: Drain,
    logger: JsonLogger,
    metrics: Metrics,
  ) {
    const checkStorage = (): Promise<void> =>
      storage.check().catch((error: Error) => {
        logger.warnSparingly('the storage takes no files', { reason: error.message });
        throw error;
      });
    this.checks = {
      database: cached(() => probeWrite(dataSource), databaseCheckMs),
      queue: () => wakeUps.check(),
      storage: cached(checkStorage, storageCheckMs),
      clock: async () => clock.agrees,
      disk: () => disk.hasRoom(),
      credentials: async () => (await this.signing()) !== 'failing',
    };
    measureHealth(metrics, this.checks, async () => (await disk.fullest())?.free);
  }

  /** Needs only the event loop: without an answer the process is killed. */
  @Get('live')
  live(): { status: 'ok'; version: string } {
    return { status: 'ok', version: serviceVersion };
  }

  /** @throws ServiceUnavailableError naming the failed checks. */
  @Get('ready')
  async ready(): Promise<Omit<Readiness, 'missing'> & { version: string; credentials: SigningState }> {
    if (this.drain.isDraining) throw new ServiceUnavailableError('The service is ending.');
    const { missing, status, checks } = await readinessOf(this.checks);
    if (missing.length > 0) throw new ServiceUnavailableError(`The service is not ready: ${missing.join(', ')}.`);
    return { status, version: serviceVersion, checks, credentials: await this.signing() };
  }

  private async signing(): Promise<SigningState> {
    return signingOf(await this.workers.all());
  }
}
