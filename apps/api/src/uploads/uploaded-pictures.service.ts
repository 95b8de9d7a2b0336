import { rm } from 'node:fs/promises';
import { type Config, CONFIG } from '@app/config';
import {
  DomainError,
  limits,
  newIdentifier,
  PictureUse,
  ServiceUnavailableError,
  UnprocessableError,
  UploadedPicture,
} from '@app/domain';
import { UploadDto } from '@app/domain/http';
import { NoPictureError, PictureDecoder } from '@app/pictures';
import { WorkError } from '@app/process';
import { Transactions } from '@app/queue';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { addStored, editsFolder, forgetReplies, StorageQuota } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { StoredFiles } from '../files/stored-files';
import { type ReceivedFile, UploadsService } from '../files/uploads.service';
import { findOwned } from '../http/find-owned';
import { type List, listByTime, type TimedRow } from '../http/list';
import { mapDiskErrors, type SentFile } from '../http/receive-file';

/** Where the storage has uploaded pictures. */
export const uploadsFolder = 'uploads';

const rule = { maxBytes: limits.sentPicture.bytes, kind: 'a PNG, JPEG or WebP picture' };

type UploadRow = TimedRow & Omit<UploadedPicture, 'ownerId' | 'accountId' | 'createdAt'> & { is_used: boolean };

const own = `account_id = $1 AND storage_key NOT LIKE '${editsFolder}/%'`;
const rank = `(
  SELECT count(*)::integer FROM uploaded_pictures twin
  WHERE twin.${own} AND twin.created_at = upload.created_at AND twin.id < upload.id
)`;
const columns = `id, token, storage_key AS "storageKey", content_type AS "contentType", width, height, bytes, created_at AS at, ${rank} AS rank,
  EXISTS (SELECT FROM picture_uses WHERE upload_id = upload.id) AS is_used`;

/** Parameters: the account, how many, and the time and the rank to start before. */
const pageStatement = `
SELECT ${columns} FROM uploaded_pictures upload
WHERE ${own} AND created_at <= $3 AND (created_at < $3 OR ${rank} < $4)
ORDER BY created_at DESC, id DESC LIMIT $2`;
const findStatement = `SELECT ${columns} FROM uploaded_pictures upload WHERE ${own} AND id = $2`;

/** An upload, and whether a part of it is more transparent than opaque. */
export interface StoredUpload {
  upload: UploadedPicture;
  isTransparent: boolean;
}

/**
 * Uploaded pictures. One has a row only after it is received, read in a process of its own, and stored upright and
 * bare.
 */
@Injectable()
export class UploadedPicturesService {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly transactions: Transactions,
    private readonly uploads: UploadsService,
    private readonly quota: StorageQuota,
    private readonly decoder: PictureDecoder,
    private readonly files: StoredFiles,
  ) {}

  /**
   * @throws UnprocessableError `PictureUnreadable`, or `StorageFull` when the file is too large as stored, and what
   * `assertBare` and `UploadsService.receive` throw
   */
  async create(ownerId: string, file: SentFile): Promise<UploadDto> {
    const { upload } = await this.receive(ownerId, file);
    await this.keep(upload);
    return UploadDto.from(upload, false, this.config.publicUrl);
  }

  /**
   * Stores a file, and says whether a part of it is more transparent than opaque; `keep` writes its row. All files of a
   * request have to come first: a row locks the owner's storage, which the next file could not reserve any more.
   * @param folder of the storage that it goes into
   * @throws as `create` does
   */
  async receive(ownerId: string, file: SentFile, folder = uploadsFolder): Promise<StoredUpload> {
    file.assertBare();
    // A sender may be slow, and a transaction must not wait for that.
    return this.transactions.runOutside(() =>
      this.uploads.receive(ownerId, file, rule, (received) => this.store(ownerId, received, folder)),
    );
  }

  /** @throws UnprocessableError `StorageFull`; then its file is removed */
  async keep(upload: UploadedPicture): Promise<void> {
    const { ownerId } = upload;
    await this.transactions
      .run(async (manager) => {
        await manager.insert(UploadedPicture, upload);
        // A file that was turned upright is encoded anew, and may have grown.
        this.quota.assertRoom(await this.quota.lock(manager, ownerId), { bytes: upload.bytes });
        await addStored(manager, ownerId, { pictureBytes: upload.bytes });
      })
      .catch(async (error: Error) => {
        if (error instanceof DomainError) await this.files.removeAll([upload.storageKey]);
        throw error;
      });
  }

  /** Removes what has come, whether its row is written or not. */
  async discard({ id, storageKey }: UploadedPicture): Promise<void> {
    const kept = await this.transactions.manager.findOneBy(UploadedPicture, { id });
    if (kept) await this.remove(kept.accountId, id);
    else await this.files.removeAll([storageKey]);
  }

  /** Without pictures of edits: they were not sent as uploads, and go with their Generation. */
  list(accountId: string): List {
    const { manager } = this.transactions;
    return listByTime<UploadRow>(
      ({ count, at, rank }) => manager.query(pageStatement, [accountId, count, at, rank]),
      async (id) => (await manager.query<UploadRow[]>(findStatement, [accountId, id])).at(0),
      ({ is_used: isUsed, ...row }) => UploadDto.from({ ...row, createdAt: row.at }, isUsed, this.config.publicUrl),
    );
  }

  async findOne(accountId: string, id: string): Promise<UploadDto> {
    const { manager } = this.transactions;
    const upload = await findOwned(manager, UploadedPicture, accountId, id);
    return UploadDto.from(upload, await manager.existsBy(PictureUse, { uploadId: id }), this.config.publicUrl);
  }

  async remove(accountId: string, id: string): Promise<void> {
    const key = await this.transactions.run(async (manager) => {
      const { ownerId, storageKey, bytes } = await findOwned(manager, UploadedPicture, accountId, id, {
        lock: 'pessimistic_write',
      });
      await manager.delete(UploadedPicture, { id });
      await forgetReplies(manager, [id]);
      await addStored(manager, ownerId, { pictureBytes: -bytes });
      return storageKey;
    });
    await this.files.removeAll([key]);
  }

  /** Puts the picture into the storage. If its row is not written then, the sweeper removes the file. */
  private async store(ownerId: string, { id, path, signal }: ReceivedFile, folder: string): Promise<StoredUpload> {
    const upright = `${path}-upright`;
    try {
      const {
        format,
        width,
        height,
        bytes,
        isTransparent = false,
      } = await mapDiskErrors(
        this.decoder.decode(ownerId, async () => ({ source: path, to: 'file', path: upright })),
      ).catch((error: Error) => {
        throw refusalOf(error);
      });
      signal.throwIfAborted();
      const storageKey = `${folder}/${id}.${format === 'jpeg' ? 'jpg' : format}`;
      await mapDiskErrors(this.storage.adopt(storageKey, upright));
      const [token, contentType, createdAt] = [newIdentifier(), `image/${format}`, new Date()];
      const upload = { id, ownerId, token, storageKey, contentType, width, height, bytes: bytes!, createdAt };
      return { upload: Object.assign(new UploadedPicture(), upload), isTransparent };
    } finally {
      await rm(upright, { force: true });
    }
  }
}

function refusalOf(error: Error): Error {
  if (error instanceof NoPictureError) return new UnprocessableError('PictureUnreadable', `The file ${error.message}.`);
  return error instanceof WorkError && error.failure !== 'failed'
    ? new ServiceUnavailableError('Pictures cannot be read at the moment. Try again shortly.')
    : error;
}
