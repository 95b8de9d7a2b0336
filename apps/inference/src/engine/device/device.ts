import { execFile } from 'node:child_process';
import { access, constants, readdir, readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Device } from '@app/diffusion';
import { executionProviders, gpuIndex, identityModel, providerOf } from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';
import { problemOfDevice } from './device-problem';

/** Assumed memory of a GPU that does not report it. */
const unknownGpuBytes = 8 * 2 ** 30;

/**
 * PCI vendors of display adapters that a virtual machine emulates: VirtIO, Red Hat, Bochs, VMware, VirtualBox. Vulkan
 * draws on them in software.
 */
const virtualVendors = ['0x1af4', '0x1b36', '0x1234', '0x15ad', '0x80ee'];

/** A device that was asked for by name and cannot be used. */
export class DeviceUnavailableError extends Error {
  override readonly name = 'DeviceUnavailableError';
}

/** @param reason the end of a sentence */
export function unavailable(device: Device, reason: string): DeviceUnavailableError {
  const guide = device === 'webgpu' ? 'docs/amd-intel-gpus.md' : 'docs/gpu-host.md';
  return new DeviceUnavailableError(
    `DEVICE names ${device}, which cannot be used here: ${reason}. ${guide} says what a GPU needs; with DEVICE=auto the processor draws where there is none.`,
  );
}

/**
 * `auto` is the first CUDA device if its provider loads, else a GPU through WebGPU if the machine
 * has one, else the CPU.
 * @param note takes a sentence for each device that is passed over, with the reason
 * @throws DeviceUnavailableError if a device is asked for by name and cannot be used
 */
export async function chooseDevice(wanted: Device | 'auto', note: (sentence: string) => void): Promise<Device> {
  if (wanted === 'auto') {
    for (const device of ['cuda:0', 'webgpu'] as const) {
      // A software device of Vulkan is slower than the CPU's own provider.
      const reason = (device === 'webgpu' ? await problemOfGpus() : undefined) ?? (await problemOf(device));
      if (reason === undefined) return device;
      note(`${device} is not used: ${reason}`);
    }
    return 'cpu';
  }
  const reason = await problemOf(wanted);
  if (reason !== undefined) throw unavailable(wanted, reason);
  const doubt = wanted === 'webgpu' ? await problemOfGpus() : undefined;
  if (doubt !== undefined) note(`webgpu may draw in software, which is slower than the processor without it: ${doubt}`);
  return wanted;
}

/** Default memory for models and drawing on a device: most of a GPU's, half of the machine's. */
export async function defaultMemoryBytes(device: Device): Promise<number> {
  if (providerOf(device) !== 'cuda') {
    // GPUs that are reached through WebGPU do not tell their memory; many share the machine's.
    const limit = process.constrainedMemory() || Infinity;
    return Math.min(totalmem(), limit, device === 'webgpu' ? 2 * unknownGpuBytes : Infinity) / 2;
  }
  const name = nvidiaSmiName(gpuIndex(device as `cuda:${number}`));
  const query = ['--query-gpu=memory.total', '--format=csv,noheader,nounits', '-i', name];
  const answer = await promisify(execFile)('nvidia-smi', query).catch(() => undefined);
  const megabytes = Number.parseInt(answer?.stdout ?? '', 10);
  return (megabytes > 0 ? megabytes * 2 ** 20 : unknownGpuBytes) * 0.85;
}

/** Why nothing can be drawn on a device, as the end of a sentence; undefined if it works. */
async function problemOf(device: Device): Promise<string | undefined> {
  if (device === 'cpu') return undefined;
  try {
    const session = await InferenceSession.create(identityModel(), {
      executionProviders: executionProviders(device),
      logSeverityLevel: 4,
    });
    await session.release();
    return undefined;
  } catch (error) {
    return problemOfDevice(device, (error as Error).message);
  }
}

/**
 * Why Vulkan can find no GPU on this machine, as the end of a sentence; undefined if it may find one. Elsewhere than on
 * Linux there always is one behind WebGPU.
 * @param root the folder in which `dev` and `sys` lie
 */
export async function problemOfGpus(root = '/'): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  const [cards, devices] = await Promise.all(
    ['dev/dri', 'dev'].map((folder) => readdir(join(root, folder)).catch((): string[] => [])),
  );
  if (devices.includes('nvidia0')) return undefined;
  const nodes = cards.filter((name) => name.startsWith('renderD'));
  if (nodes.length === 0) return 'there is no GPU in /dev/dri';
  const vendors = await Promise.all(
    // A GPU that is part of a processor, and on no bus, has no vendor here.
    nodes.map((name) => readFile(join(root, 'sys/class/drm', name, 'device/vendor'), 'utf8').catch(() => '')),
  );
  const real = nodes.filter((_, index) => !virtualVendors.includes(vendors[index].trim()));
  if (real.length === 0) return 'the machine has only an emulated display adapter, for which Vulkan draws in software';
  const opened = await Promise.allSettled(
    real.map((name) => access(join(root, 'dev/dri', name), constants.R_OK | constants.W_OK)),
  );
  if (opened.some(({ status }) => status === 'fulfilled')) return undefined;
  return `this user may not open /dev/dri/${real[0]}, and has to be in the group that owns it, which is mostly "render"`;
}

/**
 * What names a CUDA device to nvidia-smi: its number there, or its identifier. Both count by PCI bus (`Engines.start`),
 * and CUDA leaves out what CUDA_VISIBLE_DEVICES does not list.
 */
export function nvidiaSmiName(index: number, visible = process.env.CUDA_VISIBLE_DEVICES): string {
  return visible?.split(',')[index]?.trim() || String(index);
}
