import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasGpu, nvidiaSmiName } from './device';

(process.platform === 'linux' ? describe : describe.skip)(hasGpu.name, () => {
  let root: string;
  beforeEach(async () => (root = await mkdtemp(join(tmpdir(), 'darkroom-device-'))));
  afterEach(() => rm(root, { recursive: true }));

  async function addNode(name: string, vendor?: string): Promise<void> {
    await mkdir(join(root, 'dev/dri'), { recursive: true });
    await writeFile(join(root, 'dev/dri', name), '');
    if (!vendor) return;
    await mkdir(join(root, 'sys/class/drm', name, 'device'), { recursive: true });
    await writeFile(join(root, 'sys/class/drm', name, 'device/vendor'), `${vendor}\n`);
  }

  it('finds none where there is no node', async () => expect(await hasGpu(root)).toBe(false));

  it('takes no emulated adapter for one', async () => {
    await addNode('renderD128', '0x1af4');
    expect(await hasGpu(root)).toBe(false);
    await addNode('renderD129', '0x1002');
    expect(await hasGpu(root)).toBe(true);
  });

  it('finds one that is part of the processor', async () => {
    await addNode('renderD128');
    expect(await hasGpu(root)).toBe(true);
  });
});

describe(nvidiaSmiName.name, () => {
  it('is the number, or what CUDA_VISIBLE_DEVICES has in its place', () => {
    expect(nvidiaSmiName(1, undefined)).toBe('1');
    expect(nvidiaSmiName(1, '2, GPU-5e3f')).toBe('GPU-5e3f');
    expect(nvidiaSmiName(0, '3')).toBe('3');
    expect(nvidiaSmiName(0, '')).toBe('0');
  });
});
