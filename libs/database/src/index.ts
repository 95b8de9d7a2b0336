export { assertMigrated, NotMigratedError } from './assert-migrated';
export { createDataSource, dataSourceOptions } from './data-source';
export { EmbeddedPostgres } from './embedded/embedded-postgres';
export type { EmbeddedPostgresOptions } from './embedded/embedded-postgres';
export { FileLock, LockHeldError } from './embedded/file-lock';
export type { LockHolder } from './embedded/file-lock';
export { migrate } from './migrate';
export { NotificationListener } from './notification-listener';
export { newApiKey } from './new-api-key';
