import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LoadingOptions } from '../../apps/inference/src/engine/model-loading';
import { describePipeline } from '../../apps/inference/src/engine/model-loading';
import type { ModelSource } from '../../apps/inference/src/engine/engine-protocol';
import { ModelRegistry } from '../../apps/inference/src/engine/model-registry';

const root = join(__dirname, '..', '..');
const shapes: ModelSource = {
  key: 'shapes',
  name: 'shapes',
  folder: join(root, 'models', 'shapes'),
  hash: 'a'.repeat(64),
};
const robot: ModelSource = {
  ...shapes,
  key: 'robot',
  weights: {
    kind: 'lora',
    file: join(root, 'test/golden/models/lora/zwx-robot-diffusers.safetensors'),
    hash: 'b'.repeat(64),
    scale: 1,
    token: 'zwx',
  },
};

describe(describePipeline, () => {
  let cacheDir: string;
  let registry: ModelRegistry;

  beforeEach(async () => {
    cacheDir = await mkdtemp(join(tmpdir(), 'darkroom-loading-'));
    registry = new ModelRegistry(
      Infinity,
      () => new Set(),
      () => undefined,
    );
  });
  afterEach(async () => {
    await registry.clear();
    await rm(cacheDir, { recursive: true });
  });

  const load = (source: ModelSource, rest: Partial<LoadingOptions> = {}) =>
    registry.get(source.key, () =>
      describePipeline(source, { device: 'cpu', intraOpNumThreads: 1, cacheDir, ...rest }),
    );
  const merges = async () => (await readdir(join(cacheDir, 'finetunes'))).filter((name) => name !== 'bases');
  /** A merge of one kilobyte that was last used in 1970. */
  const leaveOldMerge = async (name: string) => {
    const folder = join(cacheDir, 'finetunes', name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'changed.weights'), Buffer.alloc(1024));
    await writeFile(join(folder, 'merge.json'), '{"merged":1}');
    await utimes(join(folder, 'merge.json'), 0, 0);
  };

  it('caches an optimised graph of a model, but no whole copy of one with a LoRA merged in', async () => {
    await load(robot);
    expect(await readdir(cacheDir)).toEqual(['finetunes']);
    await load(shapes);
    expect(await readdir(join(cacheDir, 'graphs'))).toHaveLength(3);
  });

  it('deletes old merges for a new one when disk space is short', async () => {
    await leaveOldMerge('lora-old-1');
    await load(robot, { mergedCacheBytes: 1024 });
    expect(await merges()).toEqual([expect.stringMatching(/^lora-(?!old)/)]);
  });

  it.each([undefined, 10 ** 9])('keeps them with room for %s bytes', async (mergedCacheBytes) => {
    await leaveOldMerge('lora-old-1');
    await load(robot, { mergedCacheBytes });
    expect(await merges()).toContain('lora-old-1');
    expect(await merges()).toHaveLength(2);
  });
});
