import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { type Config, CONFIG } from '@app/config';
import {
  CredentialsError,
  ownCertificates,
  type PictureReport,
  PictureVerifier,
  UnreadableCredentialsError,
} from '@app/credentials';
import { limits, ServiceUnavailableError, TooManyError, UnprocessableError } from '@app/domain';
import { VerificationDto, type VerifiedRecordDto } from '@app/domain/http';
import { JsonLogger } from '@app/observability';
import { formatOfSource, NoPictureError } from '@app/pictures';
import { misconfiguredExitCode, StartError, TurnsFullError, WorkError } from '@app/process';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { type ReceivedFile, UploadsService } from '../files/uploads.service';
import type { CallerKey } from '../http/caller.decorator';
import type { SentFile } from '../http/receive-file';

const rule = { maxBytes: limits.sentPicture.bytes, kind: 'a PNG, JPEG or WebP picture' };

const findStatement = `
SELECT image.storage_key AS "storageKey", image.bytes, task.kind, (
  SELECT count(*)::int FROM images before WHERE before.task_id = image.task_id AND before.index < image.index
) AS index FROM images image JOIN tasks task ON task.id = image.task_id
WHERE image.task_id = $1 AND image.index = $2 AND task.account_id = $3`;

interface Stored extends Pick<VerifiedRecordDto, 'kind' | 'index'> {
  storageKey: string;
  bytes: number;
}

const retryAfterSeconds = 5;

/** Reads what pictures say of themselves, each in a process of its own. */
@Injectable()
export class VerificationService implements OnModuleInit, OnApplicationShutdown {
  private readonly verifier = new PictureVerifier();

  constructor(
    private readonly dataSource: DataSource,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly uploads: UploadsService,
    @Inject(CONFIG) private readonly config: Config,
    private readonly logger: JsonLogger,
  ) {}

  /** @throws StartError for certificates that cannot be read */
  async onModuleInit(): Promise<void> {
    await ownCertificates(this.config).catch(({ message }: Error) => {
      throw new StartError(message, misconfiguredExitCode);
    });
  }

  onApplicationShutdown(): void {
    this.verifier.close();
  }

  /** @throws UnprocessableError `PictureUnreadable`; TooManyError; ServiceUnavailableError; what `assertBare` and `UploadsService.receive` throw */
  async verify({ id: ownerId, accountId }: CallerKey, file: SentFile): Promise<VerificationDto> {
    file.assertBare();
    return this.uploads.receive(ownerId, file, rule, async (received) => {
      const report = await this.reportOf(ownerId, received.path);
      const record = report.record && (await this.recordOf(accountId, report.record, received));
      return VerificationDto.from(report, record);
    });
  }

  private async reportOf(ownerId: string, path: string): Promise<PictureReport> {
    try {
      const [type, own] = [`image/${await formatOfSource(path)}`, await ownCertificates(this.config)];
      return await this.verifier.verify(ownerId, { path, type, own });
    } catch (error) {
      if (error instanceof NoPictureError)
        throw new UnprocessableError('PictureUnreadable', `The body ${error.message}.`);
      if (error instanceof UnreadableCredentialsError)
        throw new UnprocessableError('PictureUnreadable', `The picture's credentials cannot be read: ${error.message}`);
      if (error instanceof TurnsFullError)
        throw new TooManyError(
          'TooManyRequests',
          'Too many pictures wait to be read. Try again shortly.',
          retryAfterSeconds,
        );
      if (!(error instanceof CredentialsError || error instanceof WorkError)) throw error;
      this.logger.warnSparingly('what pictures say cannot be read', { reason: error.message });
      throw new ServiceUnavailableError('Pictures cannot be read at the moment. Try again shortly.');
    }
  }

  /** Anybody can sign that a record made a picture: it is the record's if its file has the same bytes. */
  private async recordOf(
    accountId: string,
    { id, index }: NonNullable<PictureReport['record']>,
    { bytes, hash }: ReceivedFile,
  ): Promise<VerifiedRecordDto | null> {
    const [stored] = await this.dataSource.query<Stored[]>(findStatement, [id, index, accountId]);
    if (stored?.bytes !== bytes) return null;
    const object = await this.storage.read(stored.storageKey);
    if (!object) return null;
    const found = createHash('sha256');
    await pipeline(object.stream, found);
    return found.digest('hex') === hash ? { id, kind: stored.kind, index: stored.index } : null;
  }
}
