import type { Device } from '@app/diffusion';

/** A missing library in a message of the dynamic linker. */
const missingLibrary = /(lib[\w.+-]+\.so[.\d]*): cannot open shared object file/;

/** What ONNX Runtime's message about a device means for who operates this machine, as the end of a sentence. */
export function problemOfDevice(device: Device, message: string): string {
  const [, library] = missingLibrary.exec(message) ?? [];
  if (library && !library.startsWith('libonnxruntime')) return `the library ${library} is missing`;
  const provider = `ONNX Runtime's ${device === 'webgpu' ? 'WebGPU' : 'CUDA'} provider`;
  if (library || /no available backend|not (?:enabled|supported) in this build/i.test(message))
    return `${provider} is not installed`;
  // The runtime says no more than this, whichever of them is missing.
  if (/shared library/i.test(message)) return `${provider}, or CUDA 12 or cuDNN 9, which it needs, is not installed`;
  if (/adapter/i.test(message))
    return 'no GPU is found through Vulkan, Metal or Direct3D: its driver is missing, or this user may not open it';
  if (/CUDA (?:failure|error) (?:100|101|35)\b|no CUDA-capable device|invalid device ordinal/i.test(message))
    return 'there is no such GPU, or its driver is missing';
  return `ONNX Runtime says "${message.split('\n')[0].slice(0, 200)}"`;
}
