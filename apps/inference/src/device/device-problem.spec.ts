import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { problemOfDevice, providerFolder } from './device-problem';
import { GpuMachine } from './gpu-machine';

const noAdapter = 'Failed to get a WebGPU adapter: No supported adapters.';
const noLibrary = 'OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library';
const failure = (code: number) => `CUDA failure ${code}: something ; GPU=0 ; hostname=gpu ; file=cuda.cc`;

const withNvidia = { 'dev/nvidia0': '' };
const driver = (version: string) => ({
  'proc/driver/nvidia/version': `NVRM version: NVIDIA UNIX x86_64 Kernel Module  ${version}  Thu Nov  2 2023\n`,
});
const onBus = (vendor: string) => ({
  'sys/bus/pci/devices/0000:01:00.0/vendor': `${vendor}\n`,
  'sys/bus/pci/devices/0000:01:00.0/class': '0x030200\n',
});
const cached = (...names: string[]) => ({ 'etc/ld.so.cache': names.map((name) => `/usr/lib/${name}\0`).join('') });
const providers = ['libonnxruntime_providers_shared.so', 'libonnxruntime_providers_cuda.so'];
const libraries = ['libcudart.so.12', 'libcublasLt.so.12', 'libcublas.so.12', 'libcurand.so.10', 'libcufft.so.11'];
/** Without cuFFT. */
const of13 = libraries.slice(0, 4).map((name) => name.replace('.12', '.13'));
/** The provider names what it is built for. */
const withCuda13 = { ...withNvidia, [join(providerFolder(), providers[1])]: '\x7fELF libcublas.so.13' };
const card = (name: string, vendor?: string) => ({
  [`dev/dri/${name}`]: '',
  ...(vendor && { [`sys/class/drm/${name}/device/vendor`]: `${vendor}\n` }),
});
const amd = card('renderD128', '0x1002');

type Row = [cause: string, device: 'cuda:0' | 'webgpu', message: string, files: Record<string, string>];

(process.platform === 'linux' ? describe : describe.skip)('the problem of a device', () => {
  let root: string;
  beforeEach(async () => (root = await mkdtemp(join(tmpdir(), 'darkroom-device-'))));
  afterEach(() => rm(root, { recursive: true }));

  const place = async (files: Record<string, string>): Promise<GpuMachine> => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, name)), { recursive: true });
      await writeFile(join(root, name), text);
    }
    return new GpuMachine(root, {});
  };

  it.each<Row>([
    ['there is no /dev/nvidia0, and no GPU of NVIDIA on the PCI bus', 'cuda:0', noLibrary, onBus('0x1002')],
    ["there is no /dev/nvidia0, because NVIDIA's driver does not run", 'cuda:0', noLibrary, onBus('0x10de')],
    [
      "there is no /dev/nvidia0, although NVIDIA's driver runs",
      'cuda:0',
      noLibrary,
      { ...onBus('0x10de'), ...driver('550.54.15') },
    ],
    [
      'the library libcublasLt.so.12 is missing',
      'cuda:0',
      'Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file: No such file or directory',
      withNvidia,
    ],
    [
      "ONNX Runtime's CUDA provider is not installed",
      'cuda:0',
      'Failed to load library with error: /opt/bin/libonnxruntime_providers_shared.so: cannot open shared object file',
      withNvidia,
    ],
    ["ONNX Runtime's CUDA provider is not installed", 'cuda:0', noLibrary, { ...withNvidia, ...cached(providers[0]) }],
    ['the library libcudart.so.12 is missing', 'cuda:0', noLibrary, { ...withNvidia, ...cached(...providers) }],
    [
      'the library libcudnn.so.9 is missing',
      'cuda:0',
      noLibrary,
      { ...withNvidia, ...cached(...providers, ...libraries) },
    ],
    ['the library libcufft.so.12 is missing', 'cuda:0', noLibrary, { ...withCuda13, ...cached(...providers, ...of13) }],
    [
      'the library libcudart.so.13 is missing',
      'cuda:0',
      noLibrary,
      { ...withCuda13, ...cached(...providers, ...libraries) },
    ],
    [
      "NVIDIA's driver 550.54.15 is too old for CUDA 13",
      'cuda:0',
      failure(35),
      { ...withCuda13, ...driver('550.54.15'), ...cached('libcuda.so.1') },
    ],
    ['the library libcuda.so.1 is missing', 'cuda:0', failure(35), { ...withNvidia, ...driver('550.54.15') }],
    [
      "NVIDIA's driver 470.82.01 is too old for CUDA 12",
      'cuda:0',
      failure(35),
      { ...withNvidia, ...driver('470.82.01'), ...cached('libcuda.so.1') },
    ],
    ['CUDA counts fewer GPUs, from cuda:0 on', 'cuda:0', failure(101), withNvidia],
    ['CUDA finds no GPU', 'cuda:0', failure(100), withNvidia],
    ['ONNX Runtime says "something new"', 'cuda:0', 'something new\nat line 2', withNvidia],
    ["ONNX Runtime's WebGPU provider is not installed", 'webgpu', 'no available backend found.', amd],
    ['there is no GPU in /dev/dri', 'webgpu', noAdapter, {}],
    [
      'the machine has only an emulated display adapter, for which Vulkan draws in software',
      'webgpu',
      noAdapter,
      card('renderD128', '0x1af4'),
    ],
    ["Vulkan's loader, libvulkan.so.1, is missing", 'webgpu', noAdapter, amd],
    ["Vulkan's loader, libvulkan.so.1, is missing", 'webgpu', noAdapter, withNvidia],
    ['Vulkan has no driver', 'webgpu', noAdapter, { ...amd, 'usr/lib/x86_64-linux-gnu/libvulkan.so.1': '' }],
    [
      "none of Vulkan's drivers finds a GPU",
      'webgpu',
      noAdapter,
      { ...amd, ...cached('libvulkan.so.1'), 'usr/share/vulkan/icd.d/radeon_icd.json': '{}' },
    ],
  ])('is that %s', async (cause, device, message, files) => {
    const problem = await problemOfDevice(device, message, await place(files));
    expect(problem).toEqual({ cause, remedy: expect.stringMatching(/^[a-z]/) as string });
  });

  it('is mended by the version of CUDA that the provider is built for', async () => {
    const message = 'Failed to load library with error: libcufft.so.12: cannot open shared object file';
    const { remedy } = await problemOfDevice('cuda:0', message, await place(withCuda13));
    expect(remedy).toBe('install CUDA 13');
  });

  it.each([100, 101])('may be that CUDA_VISIBLE_DEVICES hides GPUs (CUDA failure %i)', async (code) => {
    const { remedy } = await problemOfDevice('cuda:0', failure(code), await place(withNvidia));
    expect(remedy).toContain('CUDA_VISIBLE_DEVICES');
  });

  it('is not that a GPU is missing where Windows brings it into its subsystem for Linux', async () => {
    const machine = await place({ 'dev/dxg': '' });
    await expect(machine.problemOfNvidia()).resolves.toBeUndefined();
  });

  it('is none of a GPU that is real, part of the processor, or of NVIDIA', async () => {
    for (const files of [{ ...card('renderD128', '0x1af4'), ...card('renderD129', '0x1002') }, card('renderD130')])
      await expect((await place(files)).problemOfGpus()).resolves.toBeUndefined();
    await rm(join(root, 'dev/dri'), { recursive: true });
    await expect((await place(withNvidia)).problemOfGpus()).resolves.toBeUndefined();
  });

  it('is that this user may not open the only GPU', async () => {
    const machine = await place({ 'sys/class/drm/renderD128/device/vendor': '0x8086\n' });
    await mkdir(join(root, 'dev/dri'), { recursive: true });
    // root may open every file, but not one that is not there.
    await symlink(join(root, 'nothing'), join(root, 'dev/dri/renderD128'));
    await expect(machine.problemOfGpus()).resolves.toMatchObject({
      cause: 'this user may not open /dev/dri/renderD128',
    });
    await place(card('renderD129', '0x8086'));
    await expect(machine.problemOfGpus()).resolves.toBeUndefined();
  });
});
