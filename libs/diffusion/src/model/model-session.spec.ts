import { isOutOfMemory } from './model-session';

// As ONNX Runtime, its arenas and the libraries that it calls word it.
describe(isOutOfMemory.name, () => {
  it.each([
    "Non-zero status code returned while running ConstantOfShape node. Name:'' Status Message: bad allocation",
    "Non-zero status code returned while running Conv node. Name:'/down/conv/Conv' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 562949953421312",
    'Available memory of 104857600 is smaller than requested bytes of 268435456',
    'std::bad_alloc',
    'CUDA failure 2: out of memory ; GPU=0 ; hostname=gpu ; file=cuda_allocator.cc ; line=47 ; expr=cudaMalloc((void**)&p, size);',
    'CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0',
    'CUDNN failure 4000: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ; GPU=0',
    'Array buffer allocation failed',
  ])('recognises %j', (message) => {
    expect(isOutOfMemory(message)).toBe(true);
  });

  it.each([
    'Got invalid dimensions for input: sample for the following indices index: 2 Got: 8 Expected: 64',
    'CUDA failure 700: an illegal memory access was encountered',
    "Non-zero status code returned while running MatMul node. Name:'' Status Message: matmul_helper.h:62 left operand cannot broadcast on dim 1",
  ])('does not take %j for it', (message) => {
    expect(isOutOfMemory(message)).toBe(false);
  });
});
