// libuv reads this when its pool is first used, so this comes before everything else. The default of four threads is
// too few: a disk or a name server that is slow for some callers would delay everyone who reads a file.
process.env.UV_THREADPOOL_SIZE ??= '16';
