import type { EntityManager } from 'typeorm';

/**
 * Removes records from stored replies. An array keeps its other elements, so that a repeat does not make them again;
 * the reply is deleted with the last of them, or with a record of its path, such as a Fine-Tune. Parameter: the ids.
 */
const forgetStatement = `
WITH found AS (
  SELECT owner_id, key, body::json AS body FROM idempotent_replies WHERE record_ids && $1::varchar[]
  ORDER BY owner_id, key FOR UPDATE
),
rest AS (
  SELECT owner_id, key, (
    SELECT json_agg(element ORDER BY place) FILTER (WHERE element ->> 'id' <> ALL ($1::varchar[]))
    FROM json_array_elements(body) WITH ORDINALITY AS elements (element, place)
    HAVING bool_or(element ->> 'id' = ANY ($1::varchar[]))
  ) AS body
  FROM found WHERE json_typeof(body) = 'array'
),
kept AS (
  UPDATE idempotent_replies reply SET body = rest.body::text,
    record_ids = ARRAY(SELECT id FROM unnest(reply.record_ids) AS id WHERE id <> ALL ($1::varchar[]))
  FROM rest WHERE reply.owner_id = rest.owner_id AND reply.key = rest.key AND rest.body IS NOT NULL
  RETURNING reply.owner_id, reply.key
)
DELETE FROM idempotent_replies reply USING found
WHERE reply.owner_id = found.owner_id AND reply.key = found.key
  AND NOT EXISTS (SELECT FROM kept WHERE kept.owner_id = found.owner_id AND kept.key = found.key)`;

/**
 * Removes these records from the replies stored under an Idempotency-Key, in the transaction that deletes the records
 * and after that statement: nothing of a deleted record remains.
 */
export async function forgetReplies(manager: EntityManager, recordIds: readonly string[]): Promise<void> {
  if (recordIds.length > 0) await manager.query(forgetStatement, [recordIds]);
}
