import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Engine } from '../../apps/inference/src/engine/engine';
import type { DrawnModel } from '../../apps/inference/src/engine/engine-protocol';
import { threadFile } from '../support/inference';
import { smallRequest } from '../support/small-request';

const root = join(__dirname, '..', '..');
const base: DrawnModel = {
  key: 'shapes',
  name: 'shapes',
  folder: join(root, 'models', 'shapes'),
  hash: 'a'.repeat(64),
};
const robot: DrawnModel = {
  ...base,
  key: 'robot',
  weights: {
    kind: 'lora',
    file: join(root, 'test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'),
    hash: 'b'.repeat(64),
    scale: 0.7,
    token: 'zwx',
  },
};

describe('merging a Fine-Tune beside what another owner draws', () => {
  let cacheDir: string;
  let engine: Engine;
  let calls = 0;

  beforeAll(() => {
    cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-merging-'));
    engine = new Engine({
      settings: { device: 'cpu', intraOpNumThreads: 1, cacheDir },
      stallMs: 60_000,
      threadFile,
      onStep: () => calls++,
    });
  });
  afterAll(async () => {
    await engine.close();
    rmSync(cacheDir, { recursive: true, force: true });
  });

  it('goes on for as long as their calls take, and does not wait for a call at each file and layer', async () => {
    const request = { ...smallRequest, width: 512, height: 512, numInferenceSteps: 1_000 };
    const other = new AbortController();
    let began = (): void => undefined;
    const isDrawing = new Promise<void>((resolve) => (began = resolve));
    const long = engine.draw({
      ...{ owner: 'another', model: base, request, signal: other.signal },
      onProgress: () => began(),
      onPicture: () => undefined,
    });
    await isDrawing;
    const before = calls;
    await engine.draw({
      ...{ owner: 'somebody', model: robot, request: { ...request, numInferenceSteps: 1 } },
      onPicture: () => undefined,
    });
    expect(calls - before).toBeLessThan(100);
    other.abort();
    await expect(long).rejects.toThrow();
  });
});
