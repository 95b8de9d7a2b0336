import { FinetunePrompt } from '@app/domain';
import type { EntityManager } from 'typeorm';
import type { StoredChangeOf } from './storage-use';

/**
 * Makes whoever makes Styles from this Prompt wait: each Style finds its thumbnail there, or is found by
 * `keepStyleThumbnail`. Call it before the task is locked: a deletion locks the two in this order.
 */
export async function lockPrompt(manager: EntityManager, id: string): Promise<void> {
  await manager.findOne(FinetunePrompt, { where: { id }, lock: { mode: 'for_no_key_update' } });
}

/**
 * Gives the Prompt its thumbnail, and all Styles that were made from it before.
 * @returns by how much Styles of each key grow: each counts the thumbnail, because it outlives the Prompt
 */
export async function keepStyleThumbnail(
  manager: EntityManager,
  promptId: string,
  { storageKey, bytes }: { storageKey: string; bytes: number },
): Promise<StoredChangeOf[]> {
  await manager.update(FinetunePrompt, { id: promptId }, { thumbnailKey: storageKey });
  const [styles] = await manager.query<[{ ownerId: string }[], number]>(
    `UPDATE styles SET thumbnail_key = $2, record_bytes = record_bytes + $3 WHERE id IN (
       SELECT id FROM styles WHERE source_prompt_id = $1 AND thumbnail_key IS NULL ORDER BY seq FOR NO KEY UPDATE
     ) RETURNING owner_id AS "ownerId"`,
    [promptId, storageKey, bytes],
  );
  return styles.map(({ ownerId }) => ({ ownerId, recordBytes: bytes }));
}
