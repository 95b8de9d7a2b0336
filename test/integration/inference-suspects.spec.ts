import { newIdentifier } from '@app/domain';
import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, threadFile } from '../support/inference';
import { until } from '../support/until';

/** Tasks that wait at any time, each of another owner. */
const waiting = 20;

it('a task that may have ended its worker is tried alone before any other begins, although others keep coming', async () => {
  const bench = await createInferenceBench();
  const worker = await createInference({ ...bench, threadFile });
  const countOf = async (condition: string, ...values: unknown[]): Promise<number> => {
    const sql = `SELECT count(*)::integer AS count FROM tasks WHERE ${condition}`;
    const [{ count }] = await bench.dataSource.query<{ count: number }[]>(sql, values);
    return count;
  };
  let isOver = false;
  const keepComing = async (): Promise<void> => {
    while (!isOver) {
      const missing = waiting - (await countOf(`status = 'queued'`));
      for (let i = 0; i < missing; i++) await bench.addTask({ ownerId: newIdentifier(), steps: 2 });
      await until(async () => isOver || (await countOf(`status = 'queued'`)) < waiting, 'one of them begins');
    }
  };
  const coming = keepComing();
  try {
    await until(async () => (await countOf(`status = 'succeeded'`)) > waiting, 'others are drawn all the time');
    // Its owner had had the least when it was claimed, and has it again since the charge was given back.
    const ownerId = newIdentifier();
    await bench.dataSource.query('INSERT INTO fair_shares (owner_id, virtual_time) VALUES ($1, -1000)', [ownerId]);
    const suspect = await bench.addTask({ ownerId, deaths: 1, attempt: 1, steps: 2 });
    // What began before it was committed could not know of it.
    const [{ now: dueAt }] = await bench.dataSource.query<{ now: Date }[]>('SELECT clock_timestamp() AS now');
    const { status, startedAt, completedAt } = await bench.terminated(suspect.id);
    expect(status).toBe('succeeded');
    const begunBetween = (from: Date, to: Date) =>
      countOf('id <> $1 AND started_at > $2 AND started_at < $3', suspect.id, from, to);
    // The claim that was under way could not know of it, nor could one that began in the same moment.
    expect(await begunBetween(dueAt, startedAt!)).toBeLessThanOrEqual(1);
    expect(await begunBetween(startedAt!, completedAt!)).toBeLessThanOrEqual(1);
    const after = await countOf(`status = 'succeeded'`);
    await until(async () => (await countOf(`status = 'succeeded'`)) > after + 1, 'the others go on');
  } finally {
    isOver = true;
    await coming;
    await worker.close();
    await bench.close();
  }
});
