import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceWorker } from '@app/domain';
import { createInference } from '../../apps/inference/src/create-inference';
import type { InferenceBench } from '../support/inference';
import { createInferenceBench, threadFile } from '../support/inference';
import { until } from '../support/until';

describe('the inference worker with a broken model', () => {
  let bench: InferenceBench;

  beforeAll(async () => {
    bench = await createInferenceBench();
  });

  afterAll(() => bench.close());

  it('tells that it refused a model, and tries it again when its files have changed', async () => {
    const modelsDir = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    const tiny = join(__dirname, '../golden/models/tiny/sd15-diffusers');
    await cp(tiny, join(modelsDir, 'odd'), { recursive: true });
    const graph = await readFile(join(tiny, 'unet/model.onnx'));
    const odd = graph.toString('latin1').replaceAll('Sigmoid', 'Sigmoyd');
    await writeFile(join(modelsDir, 'odd/unet/model.onnx'), odd, 'latin1');
    const worker = await createInference({ ...bench, config: { ...bench.config, modelsDir }, threadFile });
    const draw = async () => bench.terminated((await bench.addTask({ model: 'odd' })).id);
    const said = async () =>
      (await bench.dataSource.manager.find(InferenceWorker)).map(({ models, broken }) => ({ models, broken }));

    const problem = expect.stringMatching(/^unet\/model\.onnx was refused by ONNX Runtime: /) as string;
    const failed = await draw();
    expect(failed).toMatchObject({ status: 'failed', attempt: 1 });
    expect(failed.error).toMatch(/^The model odd cannot be drawn with: unet\/model\.onnx was refused/);
    await until(async () => (await said())[0].models?.length === 0, 'the worker no longer has the model');
    expect(await said()).toEqual([{ models: [], broken: [expect.objectContaining({ name: 'odd', problem })] }]);

    await writeFile(join(modelsDir, 'odd/unet/model.onnx'), graph);
    expect(await draw()).toMatchObject({ status: 'succeeded' });
    await worker.close();
    await rm(modelsDir, { recursive: true });
  });
});
