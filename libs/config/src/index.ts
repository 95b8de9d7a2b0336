export { ConfigError, loadConfig } from './config';
export type { Config, S3Config } from './config';
