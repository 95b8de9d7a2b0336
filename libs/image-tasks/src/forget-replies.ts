import type { EntityManager } from 'typeorm';

/**
 * Deletes the replies that are kept for an Idempotency-Key and name one of these records, in the transaction that deletes the records
 * and after it has: nothing of what a caller deleted stays. A reply of several records goes with the first of them.
 */
export async function forgetReplies(manager: EntityManager, recordIds: readonly string[]): Promise<void> {
  if (recordIds.length > 0)
    await manager.query('DELETE FROM idempotent_replies WHERE record_ids && $1::varchar[]', [recordIds]);
}
