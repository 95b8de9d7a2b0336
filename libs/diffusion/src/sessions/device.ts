import type { InferenceSession } from 'onnxruntime-node';

/**
 * Device of a model: the processor, an NVIDIA GPU by its number, or any GPU through Vulkan, Metal or Direct3D.
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

/**
 * ONNX Runtime itself lets threads spin for longer, which is no faster on two idle cores, and slower beside other busy
 * programs. With 50 microseconds, calls on idle cores took 3 to 8 % longer.
 */
export const defaultSpinUs = 1000;

/** Lets a session's idle threads spin for so many microseconds. */
export function spinning(spinUs: number): Pick<InferenceSession.SessionOptions, 'extra'> {
  return {
    extra: { session: { intra_op: spinUs > 0 ? { spin_duration_us: String(spinUs) } : { allow_spinning: '0' } } },
  };
}
