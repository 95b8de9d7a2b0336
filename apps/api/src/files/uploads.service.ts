import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Config, CONFIG } from '@app/config';
import {
  BodyTooLargeError,
  MalformedBodyError,
  newIdentifier,
  TooManyError,
  UnauthorizedError,
  UnprocessableError,
  Upload,
} from '@app/domain';
import { JsonLogger } from '@app/observability';
import { FairTurns, TurnsFullError } from '@app/process';
import { StorageQuota, uploadLifeSql } from '@app/tasks';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { OpenRequests } from '../defence/open-requests';
import { mapDiskErrors, receiveFile, type SentFile } from '../http/receive-file';
import { DiskSpace } from './disk-space';

/** Parallel uploads of a key: enough for any client, too few to hold much of the disk. */
export const uploadsPerKey = 4;
/** Uploads of a key that wait at their senders for a place, and for how long: only a flood is refused. */
const waitingPerKey = 32;
const longestWaitMs = 20_000;
/** Interval of checks whether an upload at another api process has ended. */
const lookMs = 500;
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

/** An upload that has not grown for this long belongs to a dead process. */
const abandonedMs = 3_600_000;

interface UploadRule {
  maxBytes: number;
  /** Bytes of the file that is replaced, which do not count. */
  replacedBytes?: number;
  /** For the message about an empty file, such as `a safetensors file`. */
  kind: string;
}

interface Reservation {
  id: string;
  /** Of the file. */
  maxBytes: number;
  /** Whether `maxBytes` is the key's remaining room, and not the general maximum. */
  boundByQuota: boolean;
}

/** A file that has come. */
export interface ReceivedFile {
  id: string;
  /** A temporary path: a file that is still there afterwards is removed. */
  path: string;
  /** SHA-256 in hexadecimal. */
  hash: string;
  bytes: number;
  /** Aborted when the key is revoked; its reason is thrown. */
  signal: AbortSignal;
}

/** Uploads in progress: how many a key may have, and the space reserved for them, over all api processes. */
@Injectable()
export class UploadsService implements OnApplicationBootstrap {
  /** Shorter in tests. */
  static longestWaitMs = longestWaitMs;

  private readonly folder: string;
  private readonly turns = new FairTurns({ keyConcurrency: uploadsPerKey, perKey: waitingPerKey });

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly dataSource: DataSource,
    private readonly quota: StorageQuota,
    private readonly disk: DiskSpace,
    private readonly requests: OpenRequests,
    private readonly logger: JsonLogger,
  ) {
    this.folder = join(config.dataDir, 'uploads');
  }

  /** Removes the remains of uploads whose process died. */
  async onApplicationBootstrap(): Promise<void> {
    for (const name of await readdir(this.folder).catch(() => [])) {
      const path = join(this.folder, name);
      const found = await stat(path).catch(() => undefined);
      if (found && Date.now() - found.mtimeMs > abandonedMs) await rm(path, { force: true });
    }
  }

  /**
   * Waits for the key's turn, reserves space for a file, receives it, and keeps the space until `store` has stored it.
   * @throws BodyTooLargeError; TooManyUploadsError; UnprocessableError `StorageFull`; RoomReservedError; what
   * `receiveFile` and `store` throw
   */
  async receive<T>(
    ownerId: string,
    file: SentFile,
    rule: UploadRule,
    store: (received: ReceivedFile) => Promise<T>,
  ): Promise<T> {
    const { declaredBytes } = file;
    if ((declaredBytes ?? 0) > rule.maxBytes) throw new BodyTooLargeError(rule.maxBytes);
    const stop = new AbortController();
    this.requests.addAndFinish(ownerId, file.answer, 'upload', () => stop.abort(new UnauthorizedError()));
    const { reservation, end } = await this.inTurn(ownerId, file, rule, stop.signal);
    const { id } = reservation;
    const renewal = setInterval(() => void this.renew(id), renewMs);
    const path = join(this.folder, id);
    try {
      await mapDiskErrors(mkdir(this.folder, { recursive: true }));
      const received = await this.write(file, path, { ...reservation, kind: rule.kind, signal: stop.signal });
      file.noteHash(received.hash);
      return await store({ id, path, ...received, signal: stop.signal });
    } finally {
      clearInterval(renewal);
      await rm(path, { force: true });
      await this.logFailure(this.dataSource.manager.delete(Upload, { id }));
      end();
    }
  }

  /** Waits until few enough uploads of the key are in progress, here and in other processes. */
  private async inTurn(
    ownerId: string,
    { answer, declaredBytes }: SentFile,
    rule: UploadRule,
    stop: AbortSignal,
  ): Promise<{ reservation: Reservation; end: () => void }> {
    const gone = new AbortController();
    const timer = setTimeout(() => gone.abort(new TooManyUploadsError()), UploadsService.longestWaitMs);
    const leave = (): void => gone.abort(new MalformedBodyError('its sender has left'));
    answer.once('close', leave);
    if (answer.closed) leave();
    const signal = AbortSignal.any([gone.signal, stop]);
    let end: (() => void) | undefined;
    try {
      end = await this.turns.take(ownerId, signal);
      for (;;) {
        const reservation = await this.reserve(ownerId, declaredBytes, rule);
        if (reservation) return { reservation, end };
        await delay(lookMs);
        signal.throwIfAborted();
      }
    } catch (error) {
      end?.();
      throw error instanceof TurnsFullError ? new TooManyUploadsError() : error;
    } finally {
      clearTimeout(timer);
      answer.off('close', leave);
    }
  }

  async removeDead(): Promise<void> {
    await this.dataSource.query(`DELETE FROM uploads WHERE renewed_at < now() - ${uploadLifeSql}`);
  }

  private async write(
    { begin, declaredBytes }: SentFile,
    path: string,
    { maxBytes, boundByQuota, kind, signal }: Reservation & { kind: string; signal: AbortSignal },
  ): Promise<{ hash: string; bytes: number }> {
    const assertRoom = (bytes?: number): Promise<void> => this.disk.assertRoom(bytes);
    await assertRoom(declaredBytes);
    const tooMany = (): Error =>
      boundByQuota
        ? new UnprocessableError('StorageFull', `This API key has room for ${maxBytes} bytes; the file is larger.`)
        : new BodyTooLargeError(maxBytes);
    return receiveFile(begin(), path, { maxBytes, tooMany, kind, signal, assertRoom });
  }

  /**
   * @param declaredBytes size as the sender declares it; without one it gets all the room there is.
   * @returns undefined while the key has as many uploads as it may
   */
  private reserve(
    ownerId: string,
    declaredBytes: number | undefined,
    { maxBytes, replacedBytes = 0 }: UploadRule,
  ): Promise<Reservation | undefined> {
    return this.dataSource.transaction(async (manager) => {
      const row = await this.quota.lock(manager, ownerId);
      const [{ count }] = await manager.query<{ count: number }[]>(
        `SELECT count(*)::integer AS count FROM uploads WHERE owner_id = $1 AND renewed_at > now() - ${uploadLifeSql}`,
        [ownerId],
      );
      if (count >= uploadsPerKey) return undefined;
      this.quota.assertRoom(row, { bytes: declaredBytes, replacedBytes });
      const bytes = declaredBytes ?? Math.min(maxBytes, Math.floor(this.quota.bytesLeft(row) + replacedBytes));
      const id = newIdentifier();
      await manager.insert(Upload, { id, ownerId, bytes, renewedAt: () => 'now()' });
      return { id, maxBytes: bytes, boundByQuota: bytes < maxBytes };
    });
  }

  private renew(id: string): Promise<void> {
    return this.logFailure(this.dataSource.query('UPDATE uploads SET renewed_at = now() WHERE id = $1', [id]));
  }

  /** A row that cannot be written now will count as dead later, which is not the upload's fault. */
  private async logFailure(write: Promise<unknown>): Promise<void> {
    await write.catch((error: Error) => this.logger.warn('an upload could not be recorded', { reason: error.message }));
  }
}
