import { Collection, FieldProblems, isIdentifier, limits, type Metadata, Style, UnprocessableError } from '@app/domain';
import { type EntityManager, In, IsNull } from 'typeorm';

/** Of a Style's texts, in SQL. */
const characters = 'char_length(template) + coalesce(char_length(negative_prompt), 0)';

/**
 * The first Styles of some Collections, limited per Collection and in total. The limit comes from a subquery, which the
 * planner cannot read, so it expects to end early and walks the index; with a number it might read and sort a whole
 * Collection that it assumes to be small.
 */
const firstStyles = `
SELECT style.id, style.collection_id AS "collectionId", style.characters FROM unnest($1::varchar[]) AS collection (id)
CROSS JOIN LATERAL (
  SELECT *, ${characters} AS characters FROM styles
  WHERE collection_id = collection.id ORDER BY seq LIMIT (SELECT $2::integer)
) AS style
LIMIT $2`;

/** What an id of a request stands for. */
interface AppliedSize {
  styles: number;
  /** Of all their texts. */
  characters: number;
}

interface SizedStyle extends Pick<Style, 'id' | 'collectionId'> {
  characters: number;
}

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
  const readable = [{ accountId }, { ownerId: IsNull() }].map((owner) => ({ id: In(known), ...owner }));
  const collections = await manager.find(Collection, { select: { id: true }, where: readable });
  const parts: SizedStyle[] = await manager.query(firstStyles, [
    collections.map(({ id }) => id),
    limits.appliedPrompts + 1,
  ]);
  const single: SizedStyle[] = await manager.query(
    `SELECT id, ${characters} AS characters FROM styles WHERE id = ANY($1) AND (account_id = $2 OR owner_id IS NULL)`,
    [known, accountId],
  );
  const distinct = [...new Set([...parts, ...single].map(({ id }) => id))];
  if (distinct.length > limits.appliedPrompts) throw tooMany('more');

  const sizes = new Map<string, AppliedSize>(collections.map(({ id }) => [id, { styles: 0, characters: 0 }]));
  for (const { id, characters } of single) sizes.set(id, { styles: 1, characters });
  for (const { collectionId, characters } of parts) {
    const { styles, characters: before } = sizes.get(collectionId)!;
    sizes.set(collectionId, { styles: styles + 1, characters: before + characters });
  }
  refuseUnknown(ids, sizes, array);
  const total = (what: keyof AppliedSize): number => ids.reduce((sum, id) => sum + (sizes.get(id)?.[what] ?? 0), 0);
  if (total('styles') > limits.appliedPrompts) throw tooMany(total('styles'));
  refuseMuchText(total('characters'));
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
 * A small body could make a thousand long Prompts.
 * @param characters of all of them
 * @throws UnprocessableError `TooManyPrompts`
 */
export function refuseMuchText(characters: number): void {
  if (characters > limits.appliedTexts)
    throw new UnprocessableError(
      'TooManyPrompts',
      `The texts of the Prompts that one request makes of Styles may have ${limits.appliedTexts} characters together; these would have ${characters}. Apply fewer Styles at once.`,
    );
}

/** Each Style's Prompt carries a copy of the metadata, so a small body could make a thousand large rows. */
function refuseMuchMetadata(elements: readonly Applied[], sizes: ReadonlyMap<string, AppliedSize>): void {
  const lengths = elements.map(
    ({ id, metadata }) => Buffer.byteLength(JSON.stringify(metadata) ?? '') * (sizes.get(id)?.styles ?? 0),
  );
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (total > limits.appliedMetadata)
    throw new UnprocessableError(
      'TooManyPrompts',
      `The Prompts of one request may carry at most ${limits.appliedMetadata} bytes of metadata together; these would carry ${total}.`,
    );
}
