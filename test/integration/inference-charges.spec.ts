import { newIdentifier } from '@app/domain';
import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, threadFile } from '../support/inference';

it('charges each of the tasks that are drawn side by side its share of the engine’s time', async () => {
  const bench = await createInferenceBench();
  const owners = [newIdentifier(), newIdentifier(), newIdentifier()];
  const ids: string[] = [];
  for (let n = 0; n < 6; n++) ids.push((await bench.addTask({ ownerId: owners[n % 3], steps: 10 })).id);
  const worker = await createInference({ ...bench, threadFile });
  try {
    const tasks = await Promise.all(ids.map((id) => bench.terminated(id)));
    const seconds = tasks.map(({ computeSeconds }) => computeSeconds!);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    const started = tasks.map(({ startedAt }) => startedAt!.getTime() / 1000);
    const ended = tasks.map(({ completedAt }) => completedAt!.getTime() / 1000);
    // They were drawn side by side, and all together they are charged no more than the time that there was.
    expect(sum(ended) - sum(started)).toBeGreaterThan(2 * sum(seconds));
    expect(sum(seconds)).toBeLessThanOrEqual(Math.max(...ended) - Math.min(...started));
    for (const owner of owners) {
      const own = sum(tasks.filter(({ ownerId }) => ownerId === owner).map(({ computeSeconds }) => computeSeconds!));
      const [row] = await bench.dataSource.query<{ virtual_time: number; compute_seconds: number }[]>(
        `SELECT virtual_time, compute_seconds FROM fair_shares JOIN daily_usage USING (owner_id) WHERE owner_id = $1`,
        [owner],
      );
      expect(row.virtual_time).toBeCloseTo(own, 6);
      expect(row.compute_seconds).toBeCloseTo(own, 6);
    }
  } finally {
    await worker.close();
    await bench.close();
  }
});
