// libuv asks when its pool is first used, so this comes before everything else. Four threads, which is what there is otherwise, are
// few: a disk or a name server that is slow for some would be so for all who read a file.
process.env.UV_THREADPOOL_SIZE ??= '16';
