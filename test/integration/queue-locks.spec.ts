import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, threadFile } from '../support/inference';
import { until } from '../support/until';

it('a worker whose job goes to another says that nothing is lost, and draws its task', async () => {
  const bench = await createInferenceBench();
  const worker = await createInference({ ...bench, threadFile });
  try {
    const { id } = await bench.addTask({ steps: 50, numImages: 8 });
    await until(async () => (await bench.taskOf(id)).status === 'processing', 'it is being drawn');
    const told = () => bench.logged.filter(({ reason }) => reason !== undefined);
    await bench.dataSource.transaction(async (manager) => {
      // Without its row the task cannot end before the lock is to be renewed.
      await manager.query('SELECT FROM image_tasks WHERE id = $1 FOR UPDATE', [id]);
      await bench.dataSource.query(`UPDATE bullmq.job SET lock_token = 'another' WHERE state = 'active'`);
      await until(
        async () => told().some(({ reason }) => reason === 'could not renew lock'),
        'the lock is found to be lost',
      );
    });
    expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded', attempt: 1 });
    // The worker ends what it does with its jobs, so by then it has said all of them that it could not complete.
    await worker.close();
    for (const line of told())
      expect(line).toMatchObject({ level: 30, msg: expect.stringMatching(/nothing is lost$/) as string });
    expect(bench.logged.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  } finally {
    await worker.close();
    await bench.close();
  }
});
