import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type GraphFile, type LoadOptions, ModelSession, readModelFolder } from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';
import { graphIdentity } from '../../libs/diffusion/src/model/graph-identity';
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
const onlyEntry = async () => {
  const names = await entries();
  expect(names).toHaveLength(1);
  return join(cache, names[0]);
};

/**
 * Runs `meanwhile` when a graph is about to be opened from a folder of its own. @returns the paths of all graphs opened
 */
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

/** The graph under another name on the same file system, as in a Fine-Tune that leaves it as it is. */
async function linked(graph: GraphFile, to: string): Promise<GraphFile> {
  await mkdir(to);
  const names = ['model.onnx', ...graph.externalFiles];
  for (const name of names) await link(join(dirname(graph.path), name), join(to, name));
  return { ...graph, path: join(to, 'model.onnx') };
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

  it.each(['made', 'used'])('keeps an entry of which a deleted Fine-Tune had %s the graph', async (what) => {
    const tuned = await linked(unet, join(scratch, 'tuned'));
    for (const graph of what === 'made' ? [tuned, unet] : [unet, tuned]) await open(graph);
    const entry = await onlyEntry();
    await rm(join(scratch, 'tuned'), { recursive: true });
    await open(vaeDecoder);
    expect(await entries()).toHaveLength(2);
    expect(await stat(entry)).toBeDefined();
  });

  it('never shows another engine half of a record', async () => {
    await open(unet);
    const record = join(await onlyEntry(), 'origin.json');
    const before = await readFile(record, 'utf8');
    // What a reader that has the record open reads.
    await link(record, join(scratch, 'read'));
    await open(await linked(unet, join(scratch, 'tuned')));
    expect(await readFile(record, 'utf8')).toContain(join(scratch, 'tuned'));
    expect(await readFile(join(scratch, 'read'), 'utf8')).toBe(before);
  });

  it('tells weights apart whose files look the same from outside, as in two reproducible disk images', async () => {
    const file = join(folder, 'unet/model.onnx_data');
    const { mtime } = await stat(file);
    await utimes(file, mtime, mtime);
    const before = await graphIdentity(unet);
    const bytes = await readFile(file);
    await writeFile(file, bytes.fill(0, bytes.length / 2));
    await utimes(file, mtime, mtime);
    expect(await graphIdentity(unet)).not.toBe(before);
  });

  it.each<[string, (file: string, size: number) => Promise<void>]>([
    ['zeros', (file, size) => writeFile(file, Buffer.alloc(size))],
    ['cut short', (file, size) => truncate(file, size - 1)],
  ])('makes an entry again whose weights are %s', async (_, damage) => {
    await open(unet);
    const weights = join(await onlyEntry(), 'weights.bin');
    const before = await readFile(weights);
    await damage(weights, before.length);
    await open(unet);
    expect((await readFile(weights)).equals(before)).toBe(true);
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
