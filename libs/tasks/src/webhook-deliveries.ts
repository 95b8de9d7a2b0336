import { FinetunePrompt, Generation, newIdentifier, type Task, Training, WebhookDelivery } from '@app/domain';
import { type EntityManager, In, IsNull, Not } from 'typeorm';
import { announce, deliveryChannel } from './channels';

/** Inserts the pending delivery of each terminated Generation, Prompt or training that has a webhook. */
export async function insertDeliveries(
  manager: EntityManager,
  tasks: readonly Pick<Task, 'id' | 'kind'>[],
): Promise<void> {
  const idsOf = (wanted: Task['kind']) => tasks.filter(({ kind }) => kind === wanted).map(({ id }) => id);
  const [generationIds, promptIds, trainingIds] = [idsOf('generation'), idsOf('prompt'), idsOf('training')];
  const withWebhook = (ids: string[]) => ({ id: In(ids), webhook: Not(IsNull()) });
  const records = [
    ...(generationIds.length > 0 ? await manager.findBy(Generation, withWebhook(generationIds)) : []),
    ...(promptIds.length > 0 ? await manager.findBy(FinetunePrompt, withWebhook(promptIds)) : []),
    ...(trainingIds.length > 0 ? await trainingsWithWebhook(manager, trainingIds) : []),
  ];
  if (records.length === 0) return;
  const now = () => 'now()';
  const deliveries = records.map(({ id, ownerId, webhook }) => ({
    id: newIdentifier(),
    ownerId,
    taskId: id,
    url: webhook ?? '',
    status: 'pending' as const,
    nextAttemptAt: now,
    dueSince: now,
    createdAt: now,
  }));
  await manager.insert(WebhookDelivery, deliveries);
  await announce(
    manager,
    [deliveryChannel],
    deliveries.map(({ id }) => id),
  );
}

/** In the shape of the records of drawings, with the owner. */
async function trainingsWithWebhook(manager: EntityManager, ids: readonly string[]) {
  const where = { id: In(ids), webhook: Not(IsNull()) };
  const trainings = await manager.find(Training, { where, relations: { task: true } });
  return trainings.map(({ id, webhook, task }) => ({ id, webhook, ownerId: task.ownerId }));
}
