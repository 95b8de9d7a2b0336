import type { ObjectLiteral, SelectQueryBuilder } from 'typeorm';

/** An element of a list as it is written. */
export interface ListElement {
  id: string;
  /** Its place: the list runs from the highest to the lowest. */
  seq: number;
  json: string;
}

/** A caller's list, newest first, that can be read from any place on. */
export interface List {
  /** Place of the element with this id; undefined when it is not in the list. */
  seqOf(id: string): Promise<number | undefined>;
  /** The newest `count` elements, or those that come after the place `after`. */
  read(count: number, after?: number): Promise<ListElement[]>;
}

type Row = ObjectLiteral & { id: string; seq: number };

/**
 * The list of what a query finds, by the `seq` of its main alias.
 * A metadata column is handed on as the text that is stored: it is most of a long list, and nobody here looks into it.
 * @param present the records of some rows, in their order.
 */
export function listOf<T extends Row>(
  query: SelectQueryBuilder<T>,
  present: (rows: T[]) => object[] | Promise<object[]>,
): List {
  const { alias, expressionMap } = query;
  const hasMetadata = expressionMap.mainAlias?.metadata.columns.some(({ propertyName }) => propertyName === 'metadata');
  return {
    async seqOf(id) {
      const found = await query.clone().select(`${alias}.seq`).andWhere(`${alias}.id = :id`, { id }).getOne();
      return found?.seq;
    },
    async read(count, after) {
      const batch = query.clone().orderBy(`${alias}.seq`, 'DESC').limit(count);
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

/** JSON of a record. Inside a string each quotation mark has a backslash before it, so the name stands there once. */
function written(record: object, metadata: string | null | undefined): string {
  if (metadata === undefined) return JSON.stringify(record);
  return JSON.stringify({ ...record, metadata: null }).replace(
    '"metadata":null',
    () => `"metadata":${metadata ?? 'null'}`,
  );
}
