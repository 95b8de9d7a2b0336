import { availableParallelism } from 'node:os';
import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, threadFile } from '../support/inference';

it('a worker that is to use more threads than there are cores uses one a core, and warns of it', async () => {
  const bench = await createInferenceBench({ INFERENCE_THREADS: '999' });
  const worker = await createInference({ ...bench, threadFile });
  try {
    const cores = availableParallelism();
    expect(bench.logged.find(({ msg }) => msg === 'drawing on cpu')).toMatchObject({ threads: cores });
    const warnings = bench.logged.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);
    expect(warnings).toEqual([
      `INFERENCE_THREADS is 999, and this machine has ${cores} cores: ${cores} threads are used`,
    ]);
    const { id } = await bench.addTask();
    expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded' });
  } finally {
    await worker.close();
    await bench.close();
  }
});
