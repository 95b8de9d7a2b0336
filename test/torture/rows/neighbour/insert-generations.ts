import type { Site } from '../../site';
import type { FirstKey } from './first-key';

/** Inserts records of the first key into the database, like a year of use. @returns their ids */
export async function insertGenerations(
  site: Site,
  { caller: { token } }: FirstKey,
  { count, task, metadataBytes = 0 }: { count: number; task: Record<string, unknown>; metadataBytes?: number },
): Promise<string[]> {
  const columns = Object.keys(task);
  const values = columns.map((_, index) => `$${index + 4}`);
  const rows = await site.query<{ id: string }>(
    `WITH owner AS (SELECT id FROM api_keys WHERE prefix = $1),
     made AS (
       SELECT left(translate(encode(sha256(random()::text::bytea || n::text::bytea), 'base64'), '+/=', '-__'), 24) AS id
       FROM generate_series(1, $2::int) n),
     made_tasks AS (
       INSERT INTO tasks (id, kind, owner_id, model, cost, created_at, ${columns.join(', ')})
       SELECT made.id, 'generation', owner.id, 'shapes', 0.3, now(), ${values.join(', ')} FROM made, owner),
     made_drawings AS (
       INSERT INTO drawings (id, prompt, cfg, steps, seed, aspect_ratio, high_resolution, num_images)
       SELECT id, 'a red circle', 7.5, 2, 1, 'square', false, 1 FROM made)
     INSERT INTO generations (id, owner_id, metadata)
     SELECT made.id, owner.id, json_build_object('filling', repeat(md5(made.id), $3::int / 32)) FROM made, owner RETURNING id`,
    [token.split('_')[1], count, metadataBytes, ...Object.values(task)],
  );
  await site.query('ANALYZE');
  return rows.map(({ id }) => id);
}
