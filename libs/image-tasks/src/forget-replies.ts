import type { EntityManager } from 'typeorm';

/**
 * Deletes the replies stored under an Idempotency-Key that name one of these records, in the transaction that deletes the records
 * and after that statement, so that nothing of a deleted record remains. A reply that names several records is deleted with the
 * first of them.
 */
export async function forgetReplies(manager: EntityManager, recordIds: readonly string[]): Promise<void> {
  if (recordIds.length > 0)
    await manager.query('DELETE FROM idempotent_replies WHERE record_ids && $1::varchar[]', [recordIds]);
}
