import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nvidiaSmiName, problemOfGpus, unavailable } from './device';

(process.platform === 'linux' ? describe : describe.skip)(problemOfGpus.name, () => {
  let root: string;
  beforeEach(async () => (root = await mkdtemp(join(tmpdir(), 'darkroom-device-'))));
  afterEach(() => rm(root, { recursive: true }));

  async function addNode(name: string, vendor?: string): Promise<void> {
    await mkdir(join(root, 'dev/dri'), { recursive: true });
    await writeFile(join(root, 'dev/dri', name), '');
    if (vendor) await addVendor(name, vendor);
  }
  async function addVendor(name: string, vendor: string): Promise<void> {
    await mkdir(join(root, 'sys/class/drm', name, 'device'), { recursive: true });
    await writeFile(join(root, 'sys/class/drm', name, 'device/vendor'), `${vendor}\n`);
  }

  it('is that there is none where there is no node', async () =>
    expect(await problemOfGpus(root)).toBe('there is no GPU in /dev/dri'));

  it('is that an adapter is only emulated, until there is another', async () => {
    await addNode('renderD128', '0x1af4');
    expect(await problemOfGpus(root)).toMatch(/only an emulated display adapter/);
    await addNode('renderD129', '0x1002');
    expect(await problemOfGpus(root)).toBeUndefined();
  });

  it('is none for one that is part of the processor, nor for a card of NVIDIA', async () => {
    await addNode('renderD128');
    expect(await problemOfGpus(root)).toBeUndefined();
    await rm(join(root, 'dev/dri'), { recursive: true });
    await writeFile(join(root, 'dev/nvidia0'), '');
    expect(await problemOfGpus(root)).toBeUndefined();
  });

  it('is that this user may not open the only one', async () => {
    await mkdir(join(root, 'dev/dri'), { recursive: true });
    // root may open every file, but not one that is not there.
    await symlink(join(root, 'nothing'), join(root, 'dev/dri/renderD128'));
    await addVendor('renderD128', '0x8086');
    expect(await problemOfGpus(root)).toMatch(/^this user may not open \/dev\/dri\/renderD128, .*"render"$/);
    await addNode('renderD129', '0x8086');
    expect(await problemOfGpus(root)).toBeUndefined();
  });
});

describe(unavailable.name, () => {
  it.each([
    ['cuda:1', 'docs/gpu-host.md'],
    ['webgpu', 'docs/amd-intel-gpus.md'],
  ] as const)('names the guide to %s', (device, guide) => {
    const { message } = unavailable(device, 'it is not there');
    expect(message).toContain(`DEVICE names ${device}, which cannot be used here: it is not there. ${guide} says`);
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
