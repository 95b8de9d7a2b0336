import { Collection, FieldProblems, isIdentifier, limits, type Metadata, Style, UnprocessableError } from '@app/domain';
import { type EntityManager, In, IsNull } from 'typeorm';

/**
 * The first Styles of some Collections, limited per Collection and in total. The limit comes from a subquery, which the
 * planner cannot read, so it expects to end early and walks the index; with a number it might read and sort a whole
 * Collection that it assumes to be small.
 */
const firstStyles = `
SELECT style.id, style.collection_id AS "collectionId" FROM unnest($1::varchar[]) AS collection (id)
CROSS JOIN LATERAL (
  SELECT * FROM styles WHERE collection_id = collection.id ORDER BY seq LIMIT (SELECT $2::integer)
) AS style
LIMIT $2`;

/** Styles to apply, and what each of their Prompts carries. */
interface Applied {
  id: string;
  metadata?: Metadata | null;
}

/**
 * The Styles that `POST /v1/finetunes/:id/styles` applies: for each id all Styles of a Collection in order, or the one
 * Style, of the caller's own or public ones. They are counted first, up to the allowed number; their texts are read
 * only if there are not too many.
 * @param array pointer to it in the body
 * @throws UnprocessableError `StyleNotFound` with the pointer `/<index>/id` of each unknown id; `TooManyPrompts`.
 */
export async function stylesToApply(
  manager: EntityManager,
  accountId: string,
  elements: readonly Applied[],
  array = '',
): Promise<Style[][]> {
  const ids = elements.map(({ id }) => id);
  const known = [...new Set(ids.filter(isIdentifier))];
  const readable = [{ accountId }, { ownerId: IsNull() }];
  const ofThese = (some: readonly string[]) => readable.map((owner) => ({ id: In(some), ...owner }));
  const collections = await manager.find(Collection, { select: { id: true }, where: ofThese(known) });
  const parts: Pick<Style, 'id' | 'collectionId'>[] = await manager.query(firstStyles, [
    collections.map(({ id }) => id),
    limits.appliedPrompts + 1,
  ]);
  const single = await manager.find(Style, { select: { id: true }, where: ofThese(known) });
  const distinct = [...new Set([...parts, ...single].map(({ id }) => id))];
  if (distinct.length > limits.appliedPrompts) throw tooMany('more');

  const sizes = new Map<string, number>();
  for (const { id } of collections) sizes.set(id, 0);
  for (const { id } of single) sizes.set(id, 1);
  for (const { collectionId } of parts) sizes.set(collectionId, (sizes.get(collectionId) ?? 0) + 1);
  refuseUnknown(ids, sizes, array);
  const count = ids.reduce((sum, id) => sum + (sizes.get(id) ?? 0), 0);
  if (count > limits.appliedPrompts) throw tooMany(count);
  refuseMuchMetadata(elements, sizes);

  const styles = await manager
    .createQueryBuilder(Style, 'style')
    .where('style.id = ANY(:distinct) AND (style.account_id = :accountId OR style.owner_id IS NULL)', {
      distinct,
      accountId,
    })
    .orderBy('style.seq')
    .getMany();
  const byId = new Map<string, Style[]>(collections.map(({ id }) => [id, []]));
  for (const style of styles) {
    byId.get(style.collectionId)?.push(style);
    byId.set(style.id, [style]);
  }
  // One may have been deleted since it was counted.
  refuseUnknown(ids, byId, array);
  return ids.map((id) => byId.get(id) ?? []);
}

function refuseUnknown(ids: readonly string[], known: ReadonlyMap<string, unknown>, array: string): void {
  const unknown = new FieldProblems();
  ids.forEach((id, index) => {
    if (!known.has(id))
      unknown.add(`${array}/${index}`, 'id', `is no Style or Collection of yours, and no public one: "${shownId(id)}"`);
  });
  unknown.refuseIfAny('StyleNotFound');
}

/** An id as messages show it; a caller may send any text. */
function shownId(id: string): string {
  return id.slice(0, 40).toWellFormed();
}

function tooMany(count: number | 'more'): UnprocessableError {
  return new UnprocessableError(
    'TooManyPrompts',
    `One request may make at most ${limits.appliedPrompts} Prompts; these Styles would make ${count}.`,
  );
}

/**
 * Each Style's Prompt carries a copy of the metadata, so a small body could make a thousand large rows.
 * @param sizes how many Styles each id stands for
 */
function refuseMuchMetadata(elements: readonly Applied[], sizes: ReadonlyMap<string, number>): void {
  const lengths = elements.map(
    ({ id, metadata }) => Buffer.byteLength(JSON.stringify(metadata) ?? '') * (sizes.get(id) ?? 0),
  );
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (total > limits.appliedMetadata)
    throw new UnprocessableError(
      'TooManyPrompts',
      `The Prompts of one request may carry at most ${limits.appliedMetadata} bytes of metadata together; these would carry ${total}.`,
    );
}
