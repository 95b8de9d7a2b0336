export { JsonLogger } from './json-logger';
export { withLogFields } from './log-context';
export { Metrics, requestBuckets, stepBuckets } from './metrics';
