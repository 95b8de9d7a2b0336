import { mkdir, mkdtemp, readdir, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { GraphFile, LoadOptions } from '@app/diffusion';
import { ModelSession, readModelFolder } from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';
import { cpu } from '../support/cpu';
import { placeModel } from '../support/tiny-models';

let scratch: string;
let folder: string;
let cache: string;
/** Its graph takes one timestep and has external weights, so it is opened from a folder of its own. */
let unet: GraphFile;
let vaeDecoder: GraphFile;

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'darkroom-optimized-'));
  [folder, cache] = [join(scratch, 'model'), join(scratch, 'optimized')];
  await placeModel('sd21-optimum', folder);
  ({ unet, vaeDecoder } = await readModelFolder(folder, 'cpu'));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await rm(scratch, { recursive: true });
});

const open = async (graph: GraphFile, options: Partial<LoadOptions> = {}) => {
  const session = await ModelSession.open(graph, { ...cpu, optimizedModelDir: cache, ...options });
  await session.release();
};
const entries = async () => (await readdir(cache)).sort();
/** Runs `meanwhile` when a graph is about to be opened from a folder of its own. @returns the paths of all graphs opened */
function whileOpening(meanwhile: (file: string) => Promise<unknown>, change: Partial<InferenceSession.SessionOptions>) {
  const opened: string[] = [];
  const create = InferenceSession.create.bind(InferenceSession) as (
    file: string,
    options: InferenceSession.SessionOptions,
  ) => Promise<InferenceSession>;
  jest.spyOn(InferenceSession, 'create').mockImplementation((async (
    file: string,
    options: InferenceSession.SessionOptions,
  ) => {
    const isFirst = !opened.includes(file);
    opened.push(file);
    if (isFirst && file.includes('darkroom-graph-')) await meanwhile(file);
    return create(file, { ...options, ...change });
  }) as typeof InferenceSession.create);
  return opened;
}

describe('the cache of optimised graphs', () => {
  it('leaves a graph alone that another engine is opening from the same folder', async () => {
    const opened = whileOpening(() => open(vaeDecoder), {});
    await open(unet);
    expect(opened.filter((file) => file.includes('darkroom-graph-'))).toHaveLength(1);
    expect(await entries()).toHaveLength(2);
  });

  it('deletes what a process that died has left', async () => {
    for (const name of ['darkroom-graph-dead', 'cafe.part-dead', 'darkroom-graph-alive', 'cafe.part-alive']) {
      await mkdir(join(cache, name), { recursive: true });
      if (name.endsWith('dead')) await utimes(join(cache, name), 0, 0);
    }
    await open(vaeDecoder);
    expect((await entries()).filter((name) => /-(?:dead|alive)$/.test(name))).toEqual([
      'cafe.part-alive',
      'darkroom-graph-alive',
    ]);
  });

  it('has the folder for a mended graph with WebGPU too, where nothing is kept', async () => {
    const opened = whileOpening(
      async (file) => expect((await stat(join(dirname(file), 'model.onnx_data'))).nlink).toBeGreaterThan(1),
      { executionProviders: ['cpu'] },
    );
    await open(unet, { device: 'webgpu' });
    expect(opened).toEqual([expect.stringContaining(join(cache, 'darkroom-graph-'))]);
    expect(await entries()).toEqual([]);
  });
});
