import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, threadFile } from '../support/inference';
import { until } from '../support/until';

it('a worker whose job goes to another says that nothing is lost, and draws its task', async () => {
  const bench = await createInferenceBench();
  const worker = await createInference({ ...bench, threadFile });
  const tell = (reason: string) => bench.logged.find((line) => line.reason === reason);
  try {
    // Drawn for some seconds, so that the lock is to be renewed meanwhile.
    const { id } = await bench.addTask({ steps: 50, numImages: 2, highResolution: true });
    await until(async () => (await bench.taskOf(id)).status === 'processing', 'it is being drawn');
    await bench.dataSource.query(`UPDATE bullmq.job SET lock_token = 'another' WHERE state = 'active'`);
    await until(async () => tell('could not renew lock') !== undefined, 'the lock is found to be lost');
    expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded', attempt: 1 });
    await until(async () => tell('Lock mismatch') !== undefined, 'the job cannot be completed');
    for (const reason of ['could not renew lock', 'Lock mismatch'])
      expect(tell(reason)).toMatchObject({ level: 30, msg: expect.stringMatching(/nothing is lost$/) as string });
    expect(bench.logged.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  } finally {
    await worker.close();
    await bench.close();
  }
});
