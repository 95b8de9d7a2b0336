import type { EntityManager } from 'typeorm';
import type { Source } from './missing-thumbnails';
import { columnsOf, isMissing } from './missing-thumbnails';

/** Prompts and Styles per statement. */
const sourceBatch = 1000;
const styleBatch = 100;

/** Subqueries with a limit are index look-ups. */
const drawnSources = `
SELECT source.owner_id AS "ownerId", source.prompt_id AS "promptId"
FROM unnest($1::varchar[], $2::varchar[]) AS source (owner_id, prompt_id)
CROSS JOIN LATERAL (SELECT FROM images WHERE task_id = source.prompt_id AND index = 0 LIMIT 1) AS image
CROSS JOIN LATERAL (
  SELECT FROM styles WHERE ${isMissing} AND owner_id = source.owner_id AND source_prompt_id = source.prompt_id LIMIT 1
) AS style`;

const nextStyles = `
SELECT id, seq FROM styles
WHERE ${isMissing} AND owner_id = $1 AND source_prompt_id = $2 AND seq > $3 ORDER BY seq LIMIT $4`;

/** Those of the Prompts that have a first picture, and a Style without a thumbnail. */
interface DrawnSources {
  drawn: Source[];
  /** How many Prompts are not read yet, besides those that were read with these. */
  unread: number;
}

/** Reads any number of Prompts, some at a time. */
export async function* drawnAmong(manager: EntityManager, sources: readonly Source[]): AsyncGenerator<DrawnSources> {
  for (let start = 0; start < sources.length; start += sourceBatch) {
    const batch = sources.slice(start, start + sourceBatch);
    const drawn = await manager.query<Source[]>(drawnSources, columnsOf(batch));
    yield { drawn, unread: sources.length - start - batch.length };
  }
}

/** The ids of all Styles of a Prompt without a thumbnail, each once, some at a time. */
export async function* stylesOf(manager: EntityManager, { ownerId, promptId }: Source): AsyncGenerator<string> {
  let last = '0';
  for (;;) {
    const styles = await manager.query<{ id: string; seq: string }[]>(nextStyles, [
      ownerId,
      promptId,
      last,
      styleBatch,
    ]);
    for (const { id } of styles) yield id;
    if (styles.length < styleBatch) return;
    last = styles[styles.length - 1].seq;
  }
}
