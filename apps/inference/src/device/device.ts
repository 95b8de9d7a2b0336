import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Device, executionProviders, gpuIndex, identityModel, InferenceSession, providerOf } from '@app/diffusion';
import { misconfiguredExitCode, StartError, usableMemoryBytes } from '@app/process';
import { problemOfDevice } from './device-problem';
import { type DeviceProblem, GpuMachine } from './gpu-machine';

/** Assumed memory of a GPU that does not report it. */
const unknownGpuBytes = 8 * 2 ** 30;

/** A device that was asked for by name and cannot be used. */
export class DeviceUnavailableError extends StartError {
  constructor(message: string) {
    super(message, misconfiguredExitCode);
  }
}

export function unavailable(device: Device, { cause, remedy }: DeviceProblem): DeviceUnavailableError {
  const guide = device === 'webgpu' ? 'docs/amd-intel-gpus.md' : 'docs/gpu-host.md';
  return new DeviceUnavailableError(
    `DEVICE names ${device}, which cannot be used here: ${cause}; ${remedy}. ${guide} says what a GPU needs; with DEVICE=auto the processor draws where none can be used.`,
  );
}

/**
 * `auto` is the first CUDA device if its provider loads, else a GPU through WebGPU if the machine
 * has one, else the CPU.
 * @param note takes a sentence for each device that is passed over, with the reason
 * @throws DeviceUnavailableError if a device is asked for by name and cannot be used
 */
export async function chooseDevice(wanted: Device | 'auto', note: (sentence: string) => void): Promise<Device> {
  const machine = new GpuMachine();
  if (wanted === 'auto') {
    for (const device of ['cuda:0', 'webgpu'] as const) {
      // A software device of Vulkan is slower than the CPU's own provider.
      const inSoftware = device === 'webgpu' ? await machine.problemOfGpus() : undefined;
      const problem = inSoftware ?? (await problemOf(device, machine));
      if (problem === undefined) return device;
      note(`${device} is not used: ${problem.cause}`);
    }
    return 'cpu';
  }
  const problem = await problemOf(wanted, machine);
  if (problem !== undefined) throw unavailable(wanted, problem);
  const doubt = wanted === 'webgpu' ? await machine.problemOfGpus() : undefined;
  if (doubt !== undefined)
    note(`webgpu may draw in software, which is slower than the processor without it: ${doubt.cause}`);
  return wanted;
}

/** Default memory for models and drawing on a device: most of a GPU's, half of the machine's. */
export async function defaultMemoryBytes(device: Device): Promise<number> {
  if (providerOf(device) !== 'cuda') {
    // GPUs that are reached through WebGPU do not tell their memory; many share the machine's.
    return Math.min(usableMemoryBytes(), device === 'webgpu' ? 2 * unknownGpuBytes : Infinity) / 2;
  }
  const name = nvidiaSmiName(gpuIndex(device as `cuda:${number}`));
  const query = ['--query-gpu=memory.total', '--format=csv,noheader,nounits', '-i', name];
  const answer = await promisify(execFile)('nvidia-smi', query).catch(() => undefined);
  const megabytes = Number.parseInt(answer?.stdout ?? '', 10);
  return (megabytes > 0 ? megabytes * 2 ** 20 : unknownGpuBytes) * 0.85;
}

/** Why nothing can be drawn on a device; undefined if it works. */
async function problemOf(device: Device, machine: GpuMachine): Promise<DeviceProblem | undefined> {
  if (device === 'cpu') return undefined;
  try {
    const session = await InferenceSession.create(identityModel(), {
      executionProviders: executionProviders(device),
      logSeverityLevel: 4,
    });
    await session.release();
    return undefined;
  } catch (error) {
    return problemOfDevice(device, (error as Error).message, machine);
  }
}

/**
 * Name of a CUDA device for nvidia-smi: its number there, or its identifier. Both count by PCI bus (`Engines.start`),
 * and CUDA leaves out what CUDA_VISIBLE_DEVICES does not list.
 */
export function nvidiaSmiName(index: number, visible = process.env.CUDA_VISIBLE_DEVICES): string {
  return visible?.split(',')[index]?.trim() || String(index);
}
