import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { audit, comeToRest } from '../audit';
import type { Answer } from '../caller';
import type { Row } from '../row';

const callers = 50;

/** Fifty callers send the same request with one Idempotency-Key at the same moment, to two processes. */
export const sameKey: Row = {
  name: 'same-key',
  title: 'same Idempotency-Key x 50 at once',
  sharedSite: 'sound workers',
  async run(site, size) {
    const rounds = size === 'long' ? 20 : 2;
    const apis = await Promise.all([site.anyApi(), site.startApi()]);
    site.finally(() => apis[1].process.end('SIGTERM'));
    const [worker] = await site.anyWorkers(1);
    const first = await site.newCaller(apis[0]);
    const problems: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const key = randomUUID();
      const ask = async (i: number): Promise<Answer> => {
        const { url } = apis[i % apis.length];
        for (;;) {
          const headers = { 'idempotency-key': key };
          const { answer } = await first.to(url).create({ webhook: site.receiver.url, seed: round }, headers);
          if (answer.status !== 409) return answer;
          await delay(50 + Math.random() * 100);
        }
      };
      const answers = await Promise.all(Array.from({ length: callers }, (_, i) => ask(i)));
      const bodies = new Set(answers.map(({ status, text }) => `${status} ${text}`));
      if (bodies.size !== 1) problems.push(`${bodies.size} different replies: ${[...bodies].slice(0, 2).join(' / ')}`);
    }
    const [{ made }] = await site.query<{ made: number }>('SELECT count(*)::int AS made FROM generations');
    if (made !== rounds) problems.push(`${made} records of ${rounds} keys`);
    problems.push(...(await comeToRest(site)));
    if (site.isLastRow) await worker.end('SIGTERM');
    return audit(site, { problems, notes: { keys: rounds, callers } });
  },
};
