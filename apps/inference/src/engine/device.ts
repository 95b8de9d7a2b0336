import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
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

/**
 * `auto` is the first CUDA device if its provider loads, else a GPU through WebGPU if the machine
 * has one, else the CPU.
 * @throws DeviceUnavailableError if a device is asked for by name and cannot be used
 */
export async function chooseDevice(wanted: Device | 'auto'): Promise<Device> {
  if (wanted !== 'auto') {
    const reason = await problemOf(wanted);
    if (reason === undefined) return wanted;
    throw new DeviceUnavailableError(
      `DEVICE names ${wanted}, which cannot be used here: ${reason}. docs/gpu-host.md says what a GPU needs; with DEVICE=auto the processor draws where there is none.`,
    );
  }
  if ((await problemOf('cuda:0')) === undefined) return 'cuda:0';
  // A software device of Vulkan is slower than the CPU's own provider.
  return (await hasGpu()) && (await problemOf('webgpu')) === undefined ? 'webgpu' : 'cpu';
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
 * Whether the machine has a GPU that Vulkan may find. Elsewhere than on Linux there always is one behind WebGPU.
 * @param root the folder in which `dev` and `sys` lie
 */
export async function hasGpu(root = '/'): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const [cards, devices] = await Promise.all(
    ['dev/dri', 'dev'].map((folder) => readdir(join(root, folder)).catch((): string[] => [])),
  );
  if (devices.includes('nvidia0')) return true;
  const nodes = cards.filter((name) => name.startsWith('renderD'));
  const vendors = await Promise.all(
    // A GPU that is part of a processor, and on no bus, has no vendor here.
    nodes.map((name) => readFile(join(root, 'sys/class/drm', name, 'device/vendor'), 'utf8').catch(() => '')),
  );
  return vendors.some((vendor) => !virtualVendors.includes(vendor.trim()));
}

/**
 * What names a CUDA device to nvidia-smi: its number there, or its identifier. Both count by PCI bus (`Engines.start`),
 * and CUDA leaves out what CUDA_VISIBLE_DEVICES does not list.
 */
export function nvidiaSmiName(index: number, visible = process.env.CUDA_VISIBLE_DEVICES): string {
  return visible?.split(',')[index]?.trim() || String(index);
}
