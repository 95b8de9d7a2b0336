export type { Config, S3Config } from './config';
export { CONFIG, ConfigModule } from './config.module';
export { databaseUrlOf } from './database-url';
export { healthHostOf } from './health-host';
export { ConfigError, loadConfig } from './load-config';
