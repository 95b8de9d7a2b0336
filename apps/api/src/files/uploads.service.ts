import type { Writable } from 'node:stream';
import { limits, newIdentifier, TooManyError, UnauthorizedError, Upload } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { OpenRequests } from '../defence/open-requests';
import { StorageQuota, uploadLifeSql } from '../http/storage-quota';

/** Parallel uploads of a key: enough for any client, but too few to hold many connections or much of the disk. */
export const uploadsPerKey = 4;
/** A quarter of the time after which an upload counts as dead. */
const renewMs = 30_000;
const retryAfterSeconds = 10;

/** The key has reached its limit of parallel uploads. */
export class TooManyUploadsError extends TooManyError {
  constructor() {
    super(
      'TooManyUploads',
      `This API key may send ${uploadsPerKey} files at once. Try again when one has arrived.`,
      retryAfterSeconds,
    );
  }
}

/** An admitted upload. */
export interface AdmittedUpload {
  id: string;
  /** Its maximum size in bytes. */
  maxBytes: number;
  /** Whether the limit is the key's remaining room, and not the general maximum. */
  boundByQuota: boolean;
  /** Aborted when the key is revoked; its reason is thrown. */
  signal: AbortSignal;
}

/** Uploads in progress: how many a key may have, and the space reserved for them, over all api processes. */
@Injectable()
export class UploadsService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly quota: StorageQuota,
    private readonly requests: OpenRequests,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * Reserves space for a file until it is received and stored.
   * @param answer to the request that brings it.
   * @param declaredBytes what the sender says of its size; one that says nothing is given the room there is.
   * @param replacedBytes of the file that it takes the place of, which do not count.
   * @throws TooManyUploadsError; UnprocessableError `StorageFull`; RoomReservedError; what `receive` throws
   */
  async admit<T>(
    ownerId: string,
    answer: Writable,
    { declaredBytes, replacedBytes }: { declaredBytes?: number; replacedBytes: number },
    receive: (upload: AdmittedUpload) => Promise<T>,
  ): Promise<T> {
    const upload = await this.reserve(ownerId, declaredBytes, replacedBytes);
    const stop = new AbortController();
    this.requests.addAndFinish(ownerId, answer, 'upload', () => stop.abort(new UnauthorizedError()));
    const renewal = setInterval(() => void this.renew(upload.id), renewMs);
    try {
      return await receive({ ...upload, signal: stop.signal });
    } finally {
      clearInterval(renewal);
      await this.logFailure(this.dataSource.manager.delete(Upload, { id: upload.id }));
    }
  }

  /** Removes the uploads of dead processes. */
  async removeDead(): Promise<void> {
    await this.dataSource.query(`DELETE FROM uploads WHERE renewed_at < now() - ${uploadLifeSql}`);
  }

  private reserve(
    ownerId: string,
    declaredBytes: number | undefined,
    replacedBytes: number,
  ): Promise<Omit<AdmittedUpload, 'signal'>> {
    return this.dataSource.transaction(async (manager) => {
      // Uploads of one key are admitted one after the other, so that two do not get the same space.
      await manager.query('INSERT INTO storage_use (owner_id) VALUES ($1) ON CONFLICT DO NOTHING', [ownerId]);
      await manager.query('SELECT FROM storage_use WHERE owner_id = $1 FOR UPDATE', [ownerId]);
      const [{ count }] = await manager.query<{ count: number }[]>(
        `SELECT count(*)::integer AS count FROM uploads WHERE owner_id = $1 AND renewed_at > now() - ${uploadLifeSql}`,
        [ownerId],
      );
      if (count >= uploadsPerKey) throw new TooManyUploadsError();
      const row = await this.quota.read(manager, ownerId);
      this.quota.assertRoom(row, { bytes: declaredBytes, replacedBytes });
      const bytes = declaredBytes ?? Math.min(limits.weightsBytes, Math.floor(this.quota.room(row) + replacedBytes));
      const id = newIdentifier();
      await manager.insert(Upload, { id, ownerId, bytes, renewedAt: () => 'now()' });
      return { id, maxBytes: bytes, boundByQuota: bytes < limits.weightsBytes };
    });
  }

  private renew(id: string): Promise<void> {
    return this.logFailure(this.dataSource.query('UPDATE uploads SET renewed_at = now() WHERE id = $1', [id]));
  }

  /** A row that cannot be written now will be considered dead later, which is not the upload's fault. */
  private async logFailure(write: Promise<unknown>): Promise<void> {
    await write.catch((error: Error) => this.logger.warn('an upload could not be recorded', { reason: error.message }));
  }
}
