import type { ImageTask } from '@app/domain';
import { Generation, newIdentifier, WebhookDelivery } from '@app/domain';
import type { JobTransaction } from '@app/queue';
import { jobIdOf } from '@app/queue';
import { In, IsNull, Not } from 'typeorm';

/** Inserts the pending delivery of each terminated Generation that has a webhook. */
export async function insertDeliveries(
  transaction: JobTransaction,
  tasks: readonly Pick<ImageTask, 'id' | 'kind'>[],
): Promise<void> {
  const ids = tasks.filter(({ kind }) => kind === 'generation').map(({ id }) => id);
  if (ids.length === 0) return;
  const { manager } = transaction;
  const generations = await manager.findBy(Generation, { id: In(ids), webhook: Not(IsNull()) });
  if (generations.length === 0) return;
  const now = new Date();
  const deliveries = generations.map(({ id, ownerId, webhook }) => ({
    id: newIdentifier(),
    ownerId,
    generationId: id,
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
