// Loaded before the first module that uses libuv's thread pool, whose size is fixed from then on; see
// apps/api/src/thread-pool.ts.
process.env.UV_THREADPOOL_SIZE ??= '16';
