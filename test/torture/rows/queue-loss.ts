import { setTimeout as delay } from 'node:timers/promises';
import { startRedis, whyNoRedis } from '../../support/redis';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';

/** Redis loses every job, and is killed and restarts empty, while pictures are drawn. */
export const queueLoss: Row = {
  name: 'queue-loss',
  title: 'Redis FLUSHALL and restart mid-run',
  async run(site, size) {
    if (whyNoRedis) return audit(site, { skipped: whyNoRedis });
    const jobs = size === 'long' ? 100 : 4;
    const redis = await startRedis();
    site.finally(() => redis.close());
    Object.assign(site.env, { QUEUE_BACKEND: 'redis', REDIS_URL: redis.url });
    const api = await site.startApi();
    const workers = await site.anyWorkers();
    const caller = await site.newCaller(api);
    const picture = { webhook: site.receiver.url, steps: site.lastingSteps };
    await caller.createMany(jobs / 2, picture);
    await redis.flush();
    await caller.createMany(jobs / 2, picture);
    await redis.kill();
    await delay(500);
    await redis.start();
    const lostAt = Date.now();
    const problems = await comeToRest(site);
    if ([api.process, ...workers].some(({ isRunning }) => !isRunning)) problems.push('a process ended with its queue');
    return audit(site, { problems, mayBeUnavailable: true, notes: { 'at rest after ms': Date.now() - lostAt } });
  },
};
