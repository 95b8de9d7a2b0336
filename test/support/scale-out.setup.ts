import { whyNoRedis } from './redis';

// Before a spec file of the project `scale-out`: its tests run on Redis and S3, or are skipped, and counted, without a Redis.
process.env.TEST_SCALE_OUT = 'true';
// The S3 client would warn of the Node version before every file.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';
if (whyNoRedis) Object.assign(globalThis, { describe: describe.skip, it: it.skip, test: test.skip });
