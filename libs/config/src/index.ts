export { BackOff } from './back-off';
export { ConfigError, loadConfig } from './config';
export type { Config, S3Config } from './config';
export { crashPoint } from './crash-point';
export { keepDataPrivate } from './data-folder';
export { endSignals } from './end-signals';
export { isAlive } from './is-alive';
export { exitWithParent } from './parent';
export { Recurring } from './recurring';
