import { problemOfDevice } from './device-problem';

describe(problemOfDevice, () => {
  it.each([
    [
      'cuda:0',
      'Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file: No such file or directory',
      'the library libcublasLt.so.12 is missing',
    ],
    [
      'cuda:0',
      'Failed to load library with error: /opt/bin/libonnxruntime_providers_shared.so: cannot open shared object file',
      "ONNX Runtime's CUDA provider is not installed",
    ],
    [
      'cuda:0',
      'OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library',
      "ONNX Runtime's CUDA provider, or CUDA 12 or cuDNN 9, which it needs, is not installed",
    ],
    [
      'cuda:7',
      'CUDA failure 101: invalid device ordinal ; GPU=7 ; hostname=gpu ; file=cuda_execution_provider.cc',
      'there is no such GPU, or its driver is missing',
    ],
    [
      'webgpu',
      'Failed to get a WebGPU adapter: No supported adapters.',
      'no GPU is found through Vulkan, Metal or Direct3D: its driver is missing, or this user may not open it',
    ],
    ['cuda:0', 'something new\nat line 2', 'ONNX Runtime says "something new"'],
  ] as const)('explains what is wrong with %s: %s', (device, message, reason) => {
    expect(problemOfDevice(device, message)).toBe(reason);
  });
});
