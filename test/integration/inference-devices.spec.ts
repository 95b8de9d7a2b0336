import { createInference } from '../../apps/inference/src/create-inference';
import { createInferenceBench, threadFile } from '../support/inference';

/** What `auto` tries, in this order. */
const tried = ['cuda:0', 'webgpu', 'cpu'];

it('a worker with DEVICE=auto says of each device that it passes over why', async () => {
  const bench = await createInferenceBench({ DEVICE: 'auto' });
  const worker = await createInference({ ...bench, threadFile });
  try {
    const said = bench.logged.map(({ msg }) => String(msg));
    const end = said.findIndex((text) => text.startsWith('drawing on '));
    const passedOver = tried.slice(0, tried.indexOf(said[end].slice('drawing on '.length)));
    // Any reason, for this machine may have a GPU.
    const sentences = said.slice(0, end).filter((text) => text.includes(' is not used: '));
    expect(sentences).toHaveLength(passedOver.length);
    for (const [index, device] of passedOver.entries())
      expect(sentences[index]).toMatch(new RegExp(`^${device} is not used: .{10}`));
  } finally {
    await worker.close();
    await bench.close();
  }
});
