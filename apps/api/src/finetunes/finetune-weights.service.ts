import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { type Config, CONFIG } from '@app/config';
import {
  BodyTooLargeError,
  Finetune,
  type FinetuneWeightsKind,
  limits,
  NotFoundError,
  UnprocessableError,
} from '@app/domain';
import type { FinetuneDto } from '@app/domain/http';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { addStored } from '@app/tasks';
import { weightsName } from '@app/model-store';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { findOwned } from '../http/find-owned';
import { ModelsService } from '../models/models.service';
import { StoredFiles } from '../files/stored-files';
import { DiskSpace } from '../files/disk-space';
import { type AdmittedUpload, UploadsService } from '../files/uploads.service';
import { FinetunesService, refuseScale, weightsFolderOf } from './finetunes.service';
import { mapDiskErrors, receiveFile, refuseOtherFiles } from './receive-file';
import { WeightsInspector } from './weights-inspector';

/** An upload that has not grown for this long belongs to a dead process. */
const abandonedMs = 3_600_000;

/** A file that a caller sends. */
export interface SentFile {
  /** Tells the caller to start sending, and returns the stream. */
  begin: () => Readable;
  /** What the sender says of its size, if it does. */
  declaredBytes?: number;
  /** @throws DomainError for something else that has the file inside. */
  assertBare: () => void;
  /** Its being closed tells that the caller is not there any more. */
  answer: Writable;
}

/** A stored file, and the result of its inspection. */
interface NewWeights {
  kind: FinetuneWeightsKind;
  /** Embeddings of a textual inversion; null for a LoRA. */
  vectors: number | null;
  /** What was assumed, for people. */
  note: string | null;
  hash: string;
  bytes: number;
  key: string;
  scale: number;
  /** `<model>@<hash>` that it was checked against. */
  base: string;
}

/** Uploaded weights: they are received, checked against the model and stored; only then does the Fine-Tune get them. */
@Injectable()
export class FinetuneWeightsService implements OnApplicationBootstrap {
  private readonly uploadsDir: string;

  constructor(
    @Inject(CONFIG) config: Config,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly dataSource: DataSource,
    private readonly finetunes: FinetunesService,
    private readonly models: ModelsService,
    private readonly inspector: WeightsInspector,
    private readonly files: StoredFiles,
    private readonly uploads: UploadsService,
    private readonly disk: DiskSpace,
  ) {
    this.uploadsDir = join(config.dataDir, 'uploads');
  }

  /** Removes the rest of uploads whose process died. */
  async onApplicationBootstrap(): Promise<void> {
    for (const name of await readdir(this.uploadsDir).catch(() => [])) {
      const path = join(this.uploadsDir, name);
      const found = await stat(path).catch(() => undefined);
      if (found && Date.now() - found.mtimeMs > abandonedMs) await rm(path, { force: true });
    }
  }

  /**
   * Takes a file as the weights of a Fine-Tune, in place of those it had. Whatever fails leaves it as it was.
   * @param scale by which a LoRA is added to the model.
   * @throws NotFoundError, UnprocessableError, and what `assertBare`, `UploadsService.admit` and `receiveFile` throw
   */
  async replace(ownerId: string, id: string, file: SentFile, scale: number): Promise<FinetuneDto> {
    const { model, weightsBytes } = await this.finetunes.load(ownerId, id);
    const { declaredBytes, answer } = file;
    file.assertBare();
    const base = await this.models.served(model);
    if ((declaredBytes ?? 0) > limits.weightsBytes) throw new BodyTooLargeError(limits.weightsBytes);
    const room = { replacedBytes: weightsBytes ?? 0, ...(declaredBytes && { declaredBytes }) };
    return this.uploads.admit(ownerId, answer, room, async (upload) => {
      const path = join(this.uploadsDir, upload.id);
      await mapDiskErrors(mkdir(this.uploadsDir, { recursive: true }));
      try {
        const { hash, bytes } = await this.receive(file, path, upload);
        await refuseOtherFiles(path);
        const { kind, tokens: vectors = null, note = null } = await this.inspector.inspect(ownerId, path, base.folder);
        refuseScale(kind, scale, { parameter: 'scale' });
        upload.signal.throwIfAborted();
        // A file that is sent twice gets two keys, so that removing one never removes the other.
        const key = `${weightsFolderOf(id)}/${upload.id}-${hash}.safetensors`;
        await mapDiskErrors(this.storage.adopt(key, path)).catch(async (error: unknown) => {
          // Deleting the Fine-Tune removes its folder, with a file that is being written there.
          await this.finetunes.load(ownerId, id);
          throw error;
        });
        return await this.assign(ownerId, id, {
          kind,
          vectors,
          note,
          hash,
          bytes,
          key,
          scale,
          base: weightsName(base),
        });
      } finally {
        await rm(path, { force: true });
      }
    });
  }

  private async receive(
    { begin, declaredBytes }: SentFile,
    path: string,
    { maxBytes, boundByQuota, signal }: AdmittedUpload,
  ): Promise<{ hash: string; bytes: number }> {
    const assertRoom = (bytes?: number): Promise<void> => this.disk.assertRoom(bytes);
    await assertRoom(declaredBytes);
    const tooMany = (): Error =>
      boundByQuota
        ? new UnprocessableError('StorageFull', `This API key has room for ${maxBytes} bytes; the file is larger.`)
        : new BodyTooLargeError(maxBytes);
    return receiveFile(begin(), path, { maxBytes, tooMany, signal, assertRoom });
  }

  private async assign(ownerId: string, id: string, file: NewWeights): Promise<FinetuneDto> {
    const { kind, vectors, note, hash, bytes, key, scale, base } = file;
    try {
      const { finetune, oldKey } = await this.dataSource.transaction(async (manager) => {
        const before = await findOwned(manager, Finetune, ownerId, id, { lock: 'pessimistic_write' });
        const weights = {
          weightsKind: kind,
          weightsVectors: vectors,
          weightsHash: hash,
          weightsKey: key,
          weightsBytes: bytes,
          weightsScale: scale,
          weightsBase: base,
          weightsNote: note,
        };
        const change = { ...weights, status: 'ready', errorMessage: null } as const;
        await manager.update(Finetune, { id }, change);
        await addStored(manager, ownerId, { weightBytes: bytes - (before.weightsBytes ?? 0) });
        return { finetune: Object.assign(new Finetune(), before, change), oldKey: before.weightsKey };
      });
      if (oldKey) await this.files.removeAll([oldKey]);
      const [presented] = await this.finetunes.present([finetune]);
      return presented;
    } catch (error) {
      // After a lost connection the row may name the file; if it does not, the sweeper removes it.
      if (error instanceof NotFoundError) await this.files.removeAll([key]);
      throw error;
    }
  }
}
