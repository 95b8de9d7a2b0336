export { assertMigrated } from './assert-migrated';
export { ClockWatch, databaseNow } from './clock-watch';
export { EntityColumns } from './entity-columns';
export { DatabaseContact } from './database-contact';
export { DatabaseModule } from './database.module';
export { createDataSource, dataSourceOptions } from './data-source';
export {
  DatabaseUnreachableError,
  DatabaseUnusableError,
  explainDatabaseError,
  NotMigratedError,
} from './database-unusable-error';
export type { Enclosing } from './enclosing';
export { enclosing, JoiningDataSource } from './enclosing';
export type { DumpContents } from './dump-tables';
export { dumpTables } from './dump-tables';
export { EmbeddedPostgres } from './embedded/embedded-postgres';
export type { EmbeddedPostgresOptions } from './embedded/server-process';
export { assertEmpty, assertKnown, loadTables } from './load-tables';
export { migrate } from './migrate';
export { createIndexConcurrently } from './migrations/index-concurrently';
export { NotificationListener } from './notification-listener';
export { poolOptions, statementTimeoutMs, SteadyClient } from './pool-options';
export { underSessionLock } from './session-lock';
export { probeWrite } from './write-probe';
