import type { Device } from '@app/diffusion';

/** A missing library in a message of the dynamic linker. */
const missingLibrary = /(lib[\w.+-]+\.so[.\d]*): cannot open shared object file/;

/** What ONNX Runtime's message about a device means for who operates this machine, as the end of a sentence. */
export function problemOfDevice(device: Device, message: string): string {
  const [, library] = missingLibrary.exec(message) ?? [];
  if (library && !library.startsWith('libonnxruntime')) return `the library ${library} is missing`;
  if (library || /no available backend|shared library|not (?:enabled|supported) in this build/i.test(message))
    return `ONNX Runtime's ${device === 'webgpu' ? 'WebGPU' : 'CUDA'} provider is not installed`;
  if (/adapter|CUDA (?:failure|error) (?:100|101|35)\b|no CUDA-capable device|invalid device ordinal/i.test(message))
    return 'there is no such GPU, or its driver is missing';
  return `ONNX Runtime says "${message.split('\n')[0].slice(0, 200)}"`;
}
