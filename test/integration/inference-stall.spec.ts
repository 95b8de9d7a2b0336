import type { INestApplicationContext } from '@nestjs/common';
import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, faultyThread, threadFile } from '../support/inference';
import { until } from '../support/until';

it('a worker whose engine hangs reports it, gives its task back, and draws nothing more', async () => {
  const bench = await createInferenceBench({ ENGINE_STALL_SECONDS: '1' });
  let stalls = 0;
  let sound: INestApplicationContext | undefined;
  const hung = await createInference({ ...bench, threadFile: faultyThread('hangingEngine'), onStall: () => stalls++ });
  try {
    const { id } = await bench.addTask();
    await until(async () => stalls === 1, 'the engine is found to hang');
    const { healthPort } = bench.logged.find(({ msg }) => msg === 'inference is ready')!;
    await until(async () => {
      const response = await fetch(`http://127.0.0.1:${healthPort as number}/health/ready`);
      const { checks } = (await response.json()) as { checks: Record<string, boolean> };
      return response.status === 503 && !checks.engine && checks.queue;
    }, 'it says that its engine is not ready, and nothing else');
    await until(async () => (await bench.taskOf(id)).status === 'queued', 'its task is given back');
    // On a busy machine a healthy engine may be silent for more than a second, too.
    sound = await createInference({ ...bench, config: { ...bench.config, engineStallSeconds: 60 }, threadFile });
    expect(await bench.terminated(id)).toMatchObject({ status: 'succeeded', attempt: 2 });
    expect(bench.logged).toContainEqual(expect.objectContaining({ msg: 'engine is of no more use', device: 'cpu' }));
  } finally {
    await hung.close();
    await sound?.close();
    await bench.close();
  }
});
