import { Baseline1796000000000 } from './1796000000000-baseline';

/**
 * Every migration in order; append new ones. An index on a table that may be large is made with
 * `createIndexConcurrently`.
 */
export const migrations = [Baseline1796000000000];
