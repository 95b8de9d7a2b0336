import { Tasks } from '@app/tasks';
import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, threadFile } from '../support/inference';

/** Lets the next settlement be stored, and its answer be lost on the way from the database. */
function loseAnswers(tasks: Tasks, count: number): () => number {
  const settle = tasks.settle.bind(tasks);
  let lost = 0;
  jest.spyOn(tasks, 'settle').mockImplementation(async (...args) => {
    const isSettled = await settle(...args);
    if (lost === count) return isSettled;
    lost++;
    throw new Error('Connection terminated unexpectedly');
  });
  return () => lost;
}

describe('The pictures of a task that was settled while the database’s answer was lost', () => {
  // The worker asks again a few times.
  it.each([1, 10])('are kept by a worker that loses the answer %d times', async (count) => {
    const bench = await createInferenceBench();
    const worker = await createInference({ ...bench, threadFile });
    const lost = loseAnswers(worker.get(Tasks), count);
    const { id } = await bench.addTask({ steps: 1, numImages: 2 });
    const { images } = await bench.terminated(id);
    await worker.close();
    expect(lost()).toBeGreaterThan(0);
    expect(await bench.taskOf(id)).toMatchObject({ status: 'succeeded', attempt: 1 });
    const keys = images.map(({ storageKey }) => storageKey.replace(`${id}/`, '')).sort();
    expect(keys).toHaveLength(2);
    expect(
      (await bench.backEnds.storage.contents(id)).filter((key) => keys.some((one) => key.endsWith(one))),
    ).toHaveLength(2);
    await bench.close();
  });
});
