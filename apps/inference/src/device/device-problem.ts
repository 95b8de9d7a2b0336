import { join } from 'node:path';
import type { Device } from '@app/diffusion';
import type { DeviceProblem, GpuMachine } from './gpu-machine';

/** A missing library in a message of the dynamic linker. */
const missingLibrary = /(lib[\w.+-]+\.so[.\d]*): cannot open shared object file/;

const [sharedProvider, cudaProvider] = ['libonnxruntime_providers_shared.so', 'libonnxruntime_providers_cuda.so'];

/** A version of CUDA that ONNX Runtime's provider may be built for. */
interface Cuda {
  name: string;
  /** That the provider needs. Source: ONNX Runtime's table of CUDA requirements. */
  libraries: readonly string[];
  /** The first driver that it runs with. Source: NVIDIA's table of minor version compatibility. */
  firstDriver: number;
}
const librariesOf = (cuda: number, cufft: number): string[] => [
  ...['cudart', 'cublasLt', 'cublas'].map((name) => `lib${name}.so.${cuda}`),
  ...['libcurand.so.10', `libcufft.so.${cufft}`, 'libcudnn.so.9'],
];
const cuda12: Cuda = { name: 'CUDA 12', libraries: librariesOf(12, 11), firstDriver: 525 };
const cuda13: Cuda = { name: 'CUDA 13', libraries: librariesOf(13, 12), firstDriver: 580 };

/** The version that the installed provider is built for. */
const cudaOf = async (machine: GpuMachine): Promise<Cuda> =>
  (await machine.needs(join(providerFolder(), cudaProvider), 'libcublas.so.13')) ? cuda13 : cuda12;

/** What ONNX Runtime's message about a device means for whoever operates this machine. */
export async function problemOfDevice(device: Device, message: string, machine: GpuMachine): Promise<DeviceProblem> {
  const problem = device === 'webgpu' ? ofWebGpu(message, machine) : ofCuda(message, machine);
  return (
    (await problem) ?? {
      cause: `ONNX Runtime says "${message.split('\n')[0].slice(0, 200)}"`,
      remedy: 'compare this machine with the guide',
    }
  );
}

const isNotBuilt = (message: string): boolean =>
  /no available backend|not (?:enabled|supported) in this build/i.test(message);

async function ofWebGpu(message: string, machine: GpuMachine): Promise<DeviceProblem | undefined> {
  if (isNotBuilt(message))
    return { cause: "ONNX Runtime's WebGPU provider is not installed", remedy: 'install it with "npm ci"' };
  if (!/adapter/i.test(message)) return undefined;
  return (await machine.problemOfGpus()) ?? machine.problemOfVulkan();
}

/** CUDA leaves out what the variable does not list, and counts the others from 0. */
const hidden = 'correct CUDA_VISIBLE_DEVICES if it is set, because it hides the GPUs that it does not list';

async function ofCuda(message: string, machine: GpuMachine): Promise<DeviceProblem | undefined> {
  const noGpu = await machine.problemOfNvidia();
  if (noGpu) return noGpu;
  const [, named] = missingLibrary.exec(message) ?? [];
  if (named?.startsWith('libonnxruntime') || isNotBuilt(message)) return noProvider;
  if (named) return withoutLibrary(named, await cudaOf(machine));
  // The runtime says no more than this, whichever of them is missing.
  if (/shared library/i.test(message)) return problemOfLibraries(machine);
  if (/CUDA (?:failure|error) 35\b/i.test(message)) return problemOfDriver(machine);
  if (/CUDA (?:failure|error) 101\b|invalid device ordinal/i.test(message))
    return { cause: 'CUDA counts fewer GPUs, from cuda:0 on', remedy: `set DEVICE to one of them, or ${hidden}` };
  if (/CUDA (?:failure|error) 100\b|no CUDA-capable device/i.test(message))
    return { cause: 'CUDA finds no GPU', remedy: `see whether "nvidia-smi" lists one, and ${hidden}` };
  return undefined;
}

const noProvider: DeviceProblem = {
  cause: "ONNX Runtime's CUDA provider is not installed",
  remedy: "fetch it with the script of onnxruntime-node's package",
};

function withoutLibrary(name: string, cuda: Cuda): DeviceProblem {
  const bringer = name.startsWith('libcudnn') ? 'cuDNN 9' : name.startsWith('libcuda.') ? "NVIDIA's driver" : cuda.name;
  return { cause: `the library ${name} is missing`, remedy: `install ${bringer}` };
}

async function problemOfLibraries(machine: GpuMachine): Promise<DeviceProblem | undefined> {
  if (process.platform !== 'linux')
    return { cause: "ONNX Runtime's CUDA provider cannot be loaded", remedy: 'install it with CUDA 12 and cuDNN 9' };
  const folder = providerFolder();
  for (const name of [sharedProvider, cudaProvider]) if (!(await machine.hasLibrary(name, [folder]))) return noProvider;
  const cuda = await cudaOf(machine);
  for (const name of cuda.libraries) if (!(await machine.hasLibrary(name, [folder]))) return withoutLibrary(name, cuda);
  return undefined;
}

/** Where ONNX Runtime's providers lie, relative to the root. */
export function providerFolder(): string {
  return require
    .resolve('onnxruntime-node')
    .replace(/[/\\]dist[/\\].*/, `/bin/napi-v6/${process.platform}/${process.arch}`);
}

async function problemOfDriver(machine: GpuMachine): Promise<DeviceProblem> {
  const cuda = await cudaOf(machine);
  // CUDA gives one number for a driver that is too old and for one whose library it does not find.
  if (!(await machine.hasLibrary('libcuda.so.1'))) return withoutLibrary('libcuda.so.1', cuda);
  const version = await machine.nvidiaDriver();
  const driver = version === undefined ? "NVIDIA's driver" : `NVIDIA's driver ${version}`;
  return {
    cause: `${driver} is too old for ${cuda.name}`,
    remedy: `install version ${cuda.firstDriver} or a later one`,
  };
}
