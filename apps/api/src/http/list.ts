import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** An element of a list, as JSON. */
export interface ListElement {
  id: string;
  /** Its position: the list runs from the highest to the lowest. */
  seq: number;
  json: string;
}

/** A caller's list, newest first, that can be read from any position. */
export interface List {
  /** Position of the element with this id; undefined if it is not in the list. */
  seqOf(id: string): Promise<number | undefined>;
  /** The newest `count` elements, or those after the position `after`. */
  read(count: number, after?: number): Promise<ListElement[]>;
}

type Row = ObjectLiteral & { id: string; seq: number };

/**
 * The list of a query's rows, by the `seq` of its main alias. A metadata column is passed on as stored text: it is most
 * of a long list, and nothing here reads it.
 * @param present makes the records of some rows, in order.
 * @param narrow limits what is read. Any element of the whole list is a position.
 */
export function listOf<T extends Row>(
  query: SelectQueryBuilder<T>,
  present: (rows: T[]) => object[] | Promise<object[]>,
  narrow: (query: SelectQueryBuilder<T>) => void = () => undefined,
): List {
  const { alias, expressionMap } = query;
  const hasMetadata = expressionMap.mainAlias?.metadata.columns.some(({ propertyName }) => propertyName === 'metadata');
  return {
    async seqOf(id) {
      const found = await query
        .clone()
        .select(`${alias}.seq`)
        .andWhere(`${alias}.id = :listed`, { listed: id })
        .getOne();
      return found?.seq;
    },
    async read(count, after) {
      const batch = query.clone().orderBy(`${alias}.seq`, 'DESC').limit(count);
      narrow(batch);
      if (after !== undefined) batch.andWhere(`${alias}.seq < :after`, { after });
      if (hasMetadata) {
        const { columns = [] } = expressionMap.mainAlias?.metadata ?? {};
        const others = columns.filter(({ propertyName }) => propertyName !== 'metadata');
        batch.expressionMap.selects = batch.expressionMap.selects.filter(({ selection }) => selection !== alias);
        batch.addSelect(others.map(({ propertyName }) => `${alias}.${propertyName}`));
        batch.addSelect(`${alias}.metadata::text`, 'metadata_text');
      }
      const { entities, raw } = await batch.getRawAndEntities<{ metadata_text?: string | null }>();
      const records = await present(entities);
      return entities.map(({ id, seq }, index) => ({
        id,
        seq,
        json: written(records[index], raw[index].metadata_text),
      }));
    },
  };
}

/** JSON of a record. Inside strings quotation marks are escaped, so the placeholder occurs only once. */
function written(record: object, metadata: string | null | undefined): string {
  if (metadata === undefined) return JSON.stringify(record);
  return JSON.stringify({ ...record, metadata: null }).replace(
    '"metadata":null',
    () => `"metadata":${metadata ?? 'null'}`,
  );
}
