import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';

/** Records are canceled and deleted while they wait, are drawn, are encoded, and afterwards. */
export const randomEndings: Row = {
  name: 'random-endings',
  title: 'cancel or delete at random times',
  sharedSite: 'sound workers',
  async run(site, size) {
    const jobs = size === 'long' ? 200 : 9;
    const api = await site.anyApi();
    await site.anyWorkers();
    const caller = await site.newCaller(api);
    const problems: string[] = [];
    const counts = { canceled: 0, deleted: 0, 'too late': 0 };
    // The first ones include loading the model.
    await caller.createMany(2, { webhook: site.receiver.url });
    const one = async (i: number): Promise<void> => {
      const { id } = await caller.create({ webhook: site.receiver.url, steps: site.lastingSteps + i });
      if (!id) return void problems.push('a request was not acknowledged');
      const isThere = [() => true, (status: string) => status !== 'queued', (status: string) => status === 'succeeded'];
      await until(
        async () => {
          const [row] = await site.query<{ status: string }>('SELECT status FROM tasks WHERE id = $1', [id]);
          return isThere[i % 3](row.status);
        },
        'the record has come far enough to be ended',
        120_000,
      );
      // From the first step to some time after the end, including the encoding.
      await delay(Math.random() * 600);
      const kind = i % 2 ? 'canceled' : 'deleted';
      const { status } = await caller.end(id, kind);
      if (status === 200 || status === 201) counts[kind]++;
      else if (status === 409 && kind === 'canceled') counts['too late']++;
      else problems.push(`${kind}: answered ${status}`);
    };
    let next = 0;
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        while (next < jobs) await one(next++);
      }),
    );
    problems.push(...(await comeToRest(site)));
    return audit(site, { problems, notes: counts });
  },
};
