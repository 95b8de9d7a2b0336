import type { ImageTask } from '@app/domain';
import { FinetunePrompt, Generation, newIdentifier, WebhookDelivery } from '@app/domain';
import type { JobTransaction } from '@app/queue';
import { jobIdOf } from '@app/queue';
import { In, IsNull, Not } from 'typeorm';

/** Inserts the pending delivery of each terminated Generation or Prompt that has a webhook. */
export async function insertDeliveries(
  transaction: JobTransaction,
  tasks: readonly Pick<ImageTask, 'id' | 'kind'>[],
): Promise<void> {
  const { manager } = transaction;
  const idsOf = (wanted: ImageTask['kind']) => tasks.filter(({ kind }) => kind === wanted).map(({ id }) => id);
  const [generationIds, promptIds] = [idsOf('generation'), idsOf('prompt')];
  const withWebhook = (ids: string[]) => ({ id: In(ids), webhook: Not(IsNull()) });
  const records = [
    ...(generationIds.length > 0 ? await manager.findBy(Generation, withWebhook(generationIds)) : []),
    ...(promptIds.length > 0 ? await manager.findBy(FinetunePrompt, withWebhook(promptIds)) : []),
  ];
  if (records.length === 0) return;
  const now = new Date();
  const deliveries = records.map(({ id, ownerId, webhook }) => ({
    id: newIdentifier(),
    ownerId,
    taskId: id,
    url: webhook ?? '',
    status: 'pending' as const,
    nextAttemptAt: now,
    createdAt: now,
  }));
  await manager.insert(WebhookDelivery, deliveries);
  await transaction.enqueue(
    'webhooks',
    ...deliveries.map(({ id }) => ({ id: jobIdOf(id, 1), data: { deliveryId: id } })),
  );
}
