import type { InferenceSession } from 'onnxruntime-node';

/**
 * What a model is drawn on: the processor, an NVIDIA GPU by its number, or any GPU through Vulkan, Metal or Direct3D.
 */
export type Device = 'cpu' | 'webgpu' | `cuda:${number}`;

/** The part of ONNX Runtime that runs on a device. */
export type Provider = 'cpu' | 'webgpu' | 'cuda';

export function providerOf(device: Device): Provider {
  return device === 'cpu' || device === 'webgpu' ? device : 'cuda';
}

/** The number of a CUDA device. */
export function gpuIndex(device: `cuda:${number}`): number {
  return Number(device.slice('cuda:'.length));
}

/** The providers of a session on this device. Operators that a GPU's provider lacks run on the CPU. */
export function executionProviders(device: Device): InferenceSession.ExecutionProviderConfig[] {
  if (device === 'cpu') return ['cpu'];
  return [device === 'webgpu' ? 'webgpu' : { name: 'cuda', deviceId: gpuIndex(device) }, 'cpu'];
}
