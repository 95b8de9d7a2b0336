import { type DataSource, type EntityTarget, type ObjectLiteral } from 'typeorm';
import { type ColumnMetadata } from 'typeorm/metadata/ColumnMetadata.js';

/**
 * The columns of an entity in hand-written SQL, for requests where TypeORM's own reading would be most of the cost.
 * Names and conversions are those of the entity's metadata.
 */
export class EntityColumns<T extends ObjectLiteral> {
  private readonly columns: ColumnMetadata[];

  /** @param alias of the table in the statement */
  constructor(
    dataSource: DataSource,
    entity: EntityTarget<T>,
    private readonly alias: string,
  ) {
    this.columns = dataSource.getMetadata(entity).columns;
  }

  get list(): string {
    return this.columns
      .map(({ databaseName, propertyName }) => `${this.alias}."${databaseName}" AS "${this.alias}.${propertyName}"`)
      .join(', ');
  }

  read(row: Readonly<Record<string, unknown>>): T {
    const read = (column: ColumnMetadata): unknown => {
      const value = row[`${this.alias}.${column.propertyName}`];
      const { transformer } = column;
      return transformer && !Array.isArray(transformer) ? transformer.from(value) : value;
    };
    return Object.fromEntries(this.columns.map((column) => [column.propertyName, read(column)])) as T;
  }
}
