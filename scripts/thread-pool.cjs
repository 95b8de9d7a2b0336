// Loaded before the first module that Node reads through libuv's pool, which has its size from then on; see apps/api/src/thread-pool.ts.
process.env.UV_THREADPOOL_SIZE ??= '16';
