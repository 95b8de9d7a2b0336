import { loraForComfy } from '@app/diffusion/files';
import { ConflictError, DomainError, Finetune, limits, NotFoundError, Task, UnprocessableError } from '@app/domain';
import type { FinetuneDto } from '@app/domain/http';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { addStored, areTrained, assignWeights, type NewWeights, weightsFolderOf } from '@app/tasks';
import { weightsName } from '@app/model-store';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource, In } from 'typeorm';
import type { CallerKey } from '../http/caller.decorator';
import { findOwned } from '../http/find-owned';
import { mapDiskErrors, type SentFile } from '../http/receive-file';
import { ModelsService } from '../models/models.service';
import { StoredFiles } from '../files/stored-files';
import { UploadsService } from '../files/uploads.service';
import type { StoredFile } from './file.interceptor';
import { FinetunesService, refuseScale } from './finetunes.service';
import { refuseOtherFiles } from './refuse-other-files';
import { WeightsInspector } from './weights-inspector';

const noWeights = () => new DomainError('notFound', 'WeightsNotFound', 'The Fine-Tune has no weights.');

const dialectUnsupported = (): UnprocessableError =>
  new UnprocessableError(
    'DialectUnsupported',
    'Only weights that were trained here are given in other names than those of diffusers; these were uploaded, and come back as they came without "dialect".',
    [{ parameter: 'dialect', message: 'is for weights that were trained here' }],
  );

/** Uploaded weights: the Fine-Tune gets them only after they are received, checked against the model and stored. */
@Injectable()
export class FinetuneWeightsService {
  constructor(
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly dataSource: DataSource,
    private readonly finetunes: FinetunesService,
    private readonly models: ModelsService,
    private readonly inspector: WeightsInspector,
    private readonly files: StoredFiles,
    private readonly uploads: UploadsService,
  ) {}

  /**
   * Takes a file as the weights of a Fine-Tune, in place of earlier ones. A failure leaves them as they were.
   * @param scale by which a LoRA is added to the model.
   * @throws NotFoundError; ConflictError while it is being trained or its weights are fetched; UnprocessableError, and
   * what `assertBare` and `UploadsService.receive` throw
   */
  async replace(
    { id: ownerId, accountId }: CallerKey,
    id: string,
    file: SentFile,
    scale: number,
  ): Promise<FinetuneDto> {
    const finetune = await this.finetunes.load(accountId, id);
    await this.refuseWhileTrained(id);
    file.assertBare();
    return this.receive({ ownerId, finetune, scale }, file, (weights) => this.assign(accountId, id, weights));
  }

  /**
   * Receives a file of a key, checks it against the Fine-Tune's model, and stores it.
   * @param assign gives it to the Fine-Tune
   * @throws UnprocessableError; what `UploadsService.receive` throws
   */
  async receive<T>(
    { ownerId, finetune, scale }: { ownerId: string; finetune: Finetune; scale: number },
    file: SentFile,
    assign: (weights: NewWeights) => Promise<T>,
  ): Promise<T> {
    const { id, accountId, model, weightsBytes } = finetune;
    const base = await this.models.served(model);
    const rule = { maxBytes: limits.weightsBytes, replacedBytes: weightsBytes ?? 0, kind: 'a safetensors file' };
    // The key that is charged for them is the one whose room is looked at.
    return this.uploads.receive(finetune.ownerId, file, rule, async ({ id: uploadId, path, hash, bytes, signal }) => {
      await refuseOtherFiles(path);
      const found = await this.inspector.inspect(ownerId, path, base.folder);
      const { kind, unmatched, tokens: vectors = null, note = null } = found;
      refuseScale(kind, scale, { parameter: 'scale' });
      signal.throwIfAborted();
      // A file that is sent twice gets two keys: removing one never removes the other.
      const key = `${weightsFolderOf(id)}/${uploadId}-${hash}.safetensors`;
      await mapDiskErrors(this.storage.adopt(key, path)).catch(async (error: unknown) => {
        // Deleting the Fine-Tune removes its folder, with a file that is being written there.
        await this.finetunes.load(accountId, id);
        throw error;
      });
      return assign({ kind, vectors, note, unmatched, hash, bytes, key, scale, base: weightsName(base) });
    });
  }

  /**
   * @param dialect names of another program than diffusers
   * @throws NotFoundError; DomainError if it has no weights, or some that were uploaded and another dialect is asked
   * for
   */
  async read(accountId: string, id: string, dialect?: 'comfy'): Promise<StoredFile> {
    const { title, name, weightsKey: key, weightsHash: hash } = await this.finetunes.load(accountId, id);
    if (key === null || hash === null) throw noWeights();
    const file = { name: title ?? name, hash, open: () => this.open(key) };
    if (dialect === undefined) return file;
    if (!areTrained(key)) throw dialectUnsupported();
    return { name: `${file.name}-${dialect}`, hash: `${hash}-${dialect}`, open: () => this.openForComfy(key) };
  }

  private async open(key: string): ReturnType<StoredFile['open']> {
    const object = await this.storage.read(key);
    if (!object) throw noWeights();
    return object;
  }

  private async openForComfy(key: string): ReturnType<StoredFile['open']> {
    try {
      return await loraForComfy(await this.storage.localPath(key));
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? noWeights() : error;
    }
  }

  private async refuseWhileTrained(id: string): Promise<void> {
    const status = In(['queued', 'processing']);
    if (await this.dataSource.manager.existsBy(Task, { id, kind: 'training', status }))
      throw new ConflictError(
        'TrainingUnderWay',
        'The Fine-Tune is being trained, or its weights are fetched; cancel that first.',
      );
  }

  private async assign(accountId: string, id: string, file: NewWeights): Promise<FinetuneDto> {
    try {
      const { finetune, oldKey } = await this.dataSource.transaction(async (manager) => {
        const before = await findOwned(manager, Finetune, accountId, id, { lock: 'pessimistic_write' });
        const { change, weightBytes } = await assignWeights(manager, before, file);
        await addStored(manager, before.ownerId, { weightBytes });
        return { finetune: Object.assign(new Finetune(), before, change), oldKey: before.weightsKey };
      });
      if (oldKey) await this.files.removeAll([oldKey]);
      const [presented] = await this.finetunes.present([finetune]);
      return presented;
    } catch (error) {
      // After a lost connection the row may name the file; if it does not, the sweeper removes it.
      if (error instanceof NotFoundError) await this.files.removeAll([file.key]);
      throw error;
    }
  }
}
