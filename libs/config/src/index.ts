export type { Config, S3Config } from './config';
export { CONFIG, ConfigModule } from './config.module';
export { ConfigError, databaseUrlOf, healthHostOf, loadConfig } from './load-config';
