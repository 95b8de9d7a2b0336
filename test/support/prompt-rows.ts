import { Finetune, FinetunePrompt, Image, Task, newIdentifier } from '@app/domain';
import type { ImageStorage } from '@app/storage';
import { styleThumbnailFolder } from '@app/tasks';
import sharp from 'sharp';
import type { EntityManager } from 'typeorm';
import { drawingTask, type DrawingValues, insertDrawing } from './drawing-rows';
import { encodeStyleThumbnail } from '../../apps/inference/src/pictures/image-encoder';

/** Inserts a Fine-Tune `robot` with the token `zwx`. */
export async function insertFinetune(manager: EntityManager, ownerId: string): Promise<Finetune> {
  const row = { name: 'robot', token: 'zwx', model: 'sd1.5', status: 'registered', createdAt: new Date() } as const;
  const id = newIdentifier();
  await manager.insert(Finetune, { id, ownerId, ...row });
  return manager.findOneByOrFail(Finetune, { id });
}

/** Inserts a Prompt and its task, by default a queued one. */
export async function insertPrompt(
  manager: EntityManager,
  finetune: Finetune,
  values: { prompt?: string; task?: DrawingValues } = {},
): Promise<FinetunePrompt> {
  const id = newIdentifier();
  const { ownerId, id: finetuneId, model } = finetune;
  const prompt = values.prompt ?? 'a robot on a blue background';
  const kind = 'prompt' as const;
  await insertDrawing(manager, drawingTask(ownerId, { id, kind, finetuneId, prompt, model, ...values.task }));
  await manager.insert(FinetunePrompt, { id, ownerId, finetuneId, prompt });
  return manager.findOneOrFail(FinetunePrompt, { where: { id }, relations: { drawing: { task: true } } });
}

/** Makes a Prompt succeeded with one picture and its thumbnail in the storage, of one colour. */
export async function insertPicture(
  manager: EntityManager,
  storage: ImageStorage,
  taskId: string,
  { width = 512, height = 512, background = 'red' } = {},
): Promise<Image> {
  const picture = sharp({ create: { width, height, channels: 3, background } });
  const file = await picture.clone().png().toBuffer();
  const storageKey = `${taskId}/1/0.png`;
  const thumbnailKey = `${styleThumbnailFolder({ id: taskId, attempt: 1 })}/0.png`;
  await storage.write(storageKey, file);
  await storage.write(
    thumbnailKey,
    await encodeStyleThumbnail({ data: await picture.raw().toBuffer(), width, height }, 'trainedAlgorithmicMedia'),
  );
  const id = newIdentifier();
  const image = { id, taskId, index: 0, token: newIdentifier(), storageKey, contentType: 'image/png' };
  await manager.transaction(async (transaction) => {
    await transaction.update(Task, { id: taskId }, { status: 'succeeded', completedAt: new Date() });
    await transaction.update(FinetunePrompt, { id: taskId }, { thumbnailKey });
    await transaction.insert(Image, { ...image, width, height, bytes: file.length });
  });
  return manager.findOneByOrFail(Image, { id });
}
