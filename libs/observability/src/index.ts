export { cached, measureHealth, readinessOf } from './checks';
export type { HealthChecks, Readiness } from './checks';
export { JsonLogger } from './json-logger';
export type { LogLevel } from './json-logger';
export { mayReadMetrics } from './metrics-access';
export { Metrics, requestBuckets, stepBuckets } from './metrics';
