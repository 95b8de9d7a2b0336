import type { ImageTaskStatus } from '@app/domain';
import type { EntityManager } from 'typeorm';

/** Styles per round, of all owners together. */
const roundSize = 200;
/** Owners per round. */
const roundOwners = 200;
/** Prompts per round, of all owners together, and of each owner at least. */
const roundLooks = 2000;
const minLooks = 10;
/** Styles per round that are marked as never getting a thumbnail. */
const roundLosses = 1000;

/** A Prompt that Styles were made from. */
export interface Source {
  ownerId: string;
  promptId: string;
}

/** A Style whose thumbnail can be made. */
export interface Drawable {
  id: string;
  ownerId: string;
}

interface LookedAt extends Source {
  status: ImageTaskStatus | null;
  /** Lowest index of its pictures. */
  first: number | null;
}

/** The condition of `styles_missing_thumbnail_idx`, which contains only these rows. */
export const isMissing = 'source_prompt_id IS NOT NULL AND thumbnail_key IS NULL';

/** Owners one after the other, each with one index look-up, however many of their Styles wait. */
const nextOwners = `
WITH RECURSIVE waiting (id) AS (
  (SELECT owner_id FROM styles WHERE ${isMissing} AND owner_id > $1 ORDER BY owner_id LIMIT 1)
  UNION ALL
  SELECT next.owner_id FROM waiting CROSS JOIN LATERAL (
    SELECT owner_id FROM styles WHERE ${isMissing} AND owner_id > waiting.id ORDER BY owner_id LIMIT 1
  ) AS next
)
SELECT id FROM waiting LIMIT $2`;

/**
 * The Prompts of each owner whose Styles have no thumbnail, with their state, each by one index look-up. Subqueries
 * with a limit are index look-ups too.
 */
const nextSources = `
SELECT owner.id AS "ownerId", source.id AS "promptId",
  (SELECT status FROM image_tasks WHERE id = source.id LIMIT 1) AS status,
  (SELECT index FROM images WHERE task_id = source.id ORDER BY index LIMIT 1) AS first
FROM unnest($1::varchar[], $2::varchar[]) AS owner (id, place)
CROSS JOIN LATERAL (
  WITH RECURSIVE waiting (id) AS (
    (SELECT source_prompt_id FROM styles
     WHERE ${isMissing} AND owner_id = owner.id AND source_prompt_id > owner.place ORDER BY source_prompt_id LIMIT 1)
    UNION ALL
    SELECT next.source_prompt_id FROM waiting CROSS JOIN LATERAL (
      SELECT source_prompt_id FROM styles
      WHERE ${isMissing} AND owner_id = owner.id AND source_prompt_id > waiting.id ORDER BY source_prompt_id LIMIT 1
    ) AS next
  )
  SELECT id FROM waiting LIMIT $3
) AS source`;

/**
 * The first Styles of Prompts with a picture. A limit from a subquery keeps the planner on the index, because
 * it expects to end early.
 */
const firstDrawable = `
SELECT style.id, source.owner_id AS "ownerId"
FROM unnest($1::varchar[], $2::varchar[], $3::integer[]) AS source (owner_id, prompt_id, most)
CROSS JOIN LATERAL (SELECT FROM images WHERE task_id = source.prompt_id AND index = 0 LIMIT 1) AS image
CROSS JOIN LATERAL (
  SELECT id FROM styles
  WHERE ${isMissing} AND owner_id = source.owner_id AND source_prompt_id = source.prompt_id
  ORDER BY seq LIMIT (SELECT source.most)
) AS style
LIMIT $4`;

const markHopelessStatement = `
UPDATE styles SET source_prompt_id = NULL WHERE id = ANY (ARRAY(
  SELECT style.id FROM unnest($1::varchar[], $2::varchar[]) AS source (owner_id, prompt_id)
  CROSS JOIN LATERAL (
    SELECT id FROM styles
    WHERE ${isMissing} AND owner_id = source.owner_id AND source_prompt_id = source.prompt_id
    ORDER BY seq LIMIT (SELECT $3::integer) FOR UPDATE SKIP LOCKED
  ) AS style
))`;

/** The Styles of some Prompts whose thumbnail can be made: `most` per Prompt, and `limit` in total. */
export function drawableOf(
  manager: EntityManager,
  sources: readonly (Source & { most: number })[],
  limit: number,
): Promise<Drawable[]> {
  return manager.query<Drawable[]>(firstDrawable, [...columnsOf(sources), sources.map(({ most }) => most), limit]);
}

/**
 * Chooses the Styles whose thumbnails are made next: the same number for each owner, owners in turn. Each round reads a
 * limited number of rows, however large one owner's backlog; the next round continues where it ended.
 */
export class MissingThumbnails {
  private lastOwner = '';
  /** The last Prompt that was read of an owner with more Prompts than a round reads: at most one entry per key. */
  private readonly places = new Map<string, string>();

  /**
   * One round. A Prompt that was deleted, or has ended without a picture, will never have one, so
   * its Styles stop waiting.
   */
  async next(manager: EntityManager): Promise<Drawable[]> {
    const owners = await this.nextOwners(manager);
    if (owners.length === 0) return [];
    const looks = Math.max(minLooks, Math.floor(roundLooks / owners.length));
    const places = owners.map((id) => this.places.get(id) ?? '');
    const sources = await manager.query<LookedAt[]>(nextSources, [owners, places, looks]);
    const byOwner = byOwnerOf(sources);
    for (const id of owners) this.remember(id, byOwner.get(id) ?? [], looks);
    await markHopeless(manager, sources.filter(isLost));
    const drawn = [...byOwner.values()].map((own) => own.filter(({ first }) => first === 0));
    return inTurns(
      await choose(
        manager,
        drawn.filter(({ length }) => length > 0),
      ),
    );
  }

  private async nextOwners(manager: EntityManager): Promise<string[]> {
    const from = async (place: string, count: number): Promise<string[]> =>
      (await manager.query<{ id: string }[]>(nextOwners, [place, count])).map(({ id }) => id);
    const owners = await from(this.lastOwner, roundOwners);
    const again = this.lastOwner && owners.length < roundOwners ? await from('', roundOwners - owners.length) : [];
    const all = [...new Set([...owners, ...again])];
    this.lastOwner = all.length < roundOwners ? '' : all[all.length - 1];
    return all;
  }

  private remember(ownerId: string, sources: readonly Source[], looks: number): void {
    if (sources.length < looks) this.places.delete(ownerId);
    else this.places.set(ownerId, sources[sources.length - 1].promptId);
  }
}

function isLost({ status, first }: LookedAt): boolean {
  return first === null && status !== 'queued' && status !== 'processing';
}

async function markHopeless(manager: EntityManager, sources: readonly Source[]): Promise<void> {
  if (sources.length === 0) return;
  await manager.query(markHopelessStatement, [
    ...columnsOf(sources),
    Math.max(1, Math.floor(roundLosses / sources.length)),
  ]);
}

/** @param drawn each owner's Prompts that have a picture. */
async function choose(manager: EntityManager, drawn: readonly (readonly Source[])[]): Promise<Drawable[]> {
  const share = Math.max(1, Math.floor(roundSize / drawn.length));
  const sources = drawn.flatMap((own) => {
    const taken = own.slice(0, share);
    return taken.map((source) => ({ ...source, most: Math.ceil(share / taken.length) }));
  });
  return sources.length > 0 ? drawableOf(manager, sources, 2 * roundSize) : [];
}

/** The first of each owner, then the second of each, and so on. */
function inTurns(styles: readonly Drawable[]): Drawable[] {
  const byOwner = [...byOwnerOf(styles).values()];
  const longest = Math.max(0, ...byOwner.map(({ length }) => length));
  return Array.from({ length: longest }, (_, place) => byOwner.flatMap((own) => own.slice(place, place + 1))).flat();
}

function byOwnerOf<T extends { ownerId: string }>(things: readonly T[]): Map<string, T[]> {
  const byOwner = new Map<string, T[]>();
  for (const thing of things) {
    const own = byOwner.get(thing.ownerId);
    if (own) own.push(thing);
    else byOwner.set(thing.ownerId, [thing]);
  }
  return byOwner;
}

/** Owners and Prompts as the parameters of a statement. */
export function columnsOf(sources: readonly Source[]): [string[], string[]] {
  return [sources.map(({ ownerId }) => ownerId), sources.map(({ promptId }) => promptId)];
}
