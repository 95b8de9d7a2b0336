/** SQL expressions, of parameters and of the number `i` from 1. */
interface Columns {
  id: string;
  owner: string;
  kind?: string;
  model?: string;
  status?: string;
  createdAt?: string;
  completedAt?: string;
  prompt?: string;
}

/** SQL for WITH that inserts many tasks with their drawings; `made` has their ids. */
export const manyTasks = (count: number | string, columns: Columns): string => {
  const { id, owner, kind = `'generation'`, model = `'shapes'`, status = `'queued'`, createdAt = 'now()' } = columns;
  const { completedAt = 'NULL::timestamptz', prompt = `'a star'` } = columns;
  return `made AS (SELECT ${id} AS id, i FROM generate_series(1, ${count}) AS i),
    made_tasks AS (
      INSERT INTO tasks (id, kind, owner_id, model, cost, status, created_at, completed_at)
      SELECT id, ${kind}, ${owner}, ${model}, 1.7, ${status}, ${createdAt}, ${completedAt} FROM made
    ),
    made_drawings AS (
      INSERT INTO drawings (id, prompt, cfg, steps, seed, aspect_ratio, high_resolution, num_images)
      SELECT id, ${prompt}, 7.5, 30, i, 'square', false, 1 FROM made
    )`;
};
