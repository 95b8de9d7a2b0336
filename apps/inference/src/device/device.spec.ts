import { nvidiaSmiName, unavailable } from './device';

describe(unavailable.name, () => {
  it.each([
    ['cuda:1', 'docs/gpu-host.md'],
    ['webgpu', 'docs/amd-intel-gpus.md'],
  ] as const)('names the guide to %s', (device, guide) => {
    const { message } = unavailable(device, { cause: 'it is not there', remedy: 'add it' });
    expect(message).toBe(
      `DEVICE names ${device}, which cannot be used here: it is not there; add it. ${guide} says what a GPU needs; with DEVICE=auto the processor draws where none can be used.`,
    );
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
