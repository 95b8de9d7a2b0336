import { whyNoRedis } from './redis';

// Runs before each spec file of the project `scale-out`: its tests run on Redis and S3, or count as skipped without a
// Redis.
process.env.TEST_SCALE_OUT = 'true';
if (whyNoRedis) Object.assign(globalThis, { describe: describe.skip, it: it.skip, test: test.skip });
