export type { Config, S3Config } from './config';
export { ConfigError, loadConfig } from './load-config';
