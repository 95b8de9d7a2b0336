import { execFile } from 'node:child_process';
import { totalmem } from 'node:os';
import { promisify } from 'node:util';
import { identityModel } from '@app/diffusion';
import { InferenceSession } from 'onnxruntime-node';

export type Device = 'cpu' | `cuda:${number}`;

/** Assumed memory of a GPU that does not report it. */
const unknownGpuBytes = 8 * 2 ** 30;

/** The device to draw on, and the reason if it is not the requested one. */
export interface ChosenDevice {
  device: Device;
  fallback?: string;
}

/** `auto` is the first GPU if its provider loads. If a named GPU does not load, the CPU replaces it, with the reason. */
export async function chooseDevice(wanted: Device | 'auto'): Promise<ChosenDevice> {
  if (wanted === 'cpu') return { device: 'cpu' };
  const device = wanted === 'auto' ? 'cuda:0' : wanted;
  try {
    const session = await InferenceSession.create(identityModel(), {
      executionProviders: [{ name: 'cuda', deviceId: gpuIndex(device) }],
      logSeverityLevel: 4,
    });
    await session.release();
    return { device };
  } catch (error) {
    if (wanted === 'auto') return { device: 'cpu' };
    const [reason] = (error as Error).message.split('\n');
    return { device: 'cpu', fallback: `${wanted} cannot be used, the CPU draws instead: ${reason}` };
  }
}

/** Default memory for models and drawing on a device: most of a GPU's, half of the machine's. */
export async function defaultMemoryBytes(device: Device): Promise<number> {
  if (device === 'cpu') {
    const limit = process.constrainedMemory() || Infinity;
    return Math.min(totalmem(), limit) / 2;
  }
  const query = ['--query-gpu=memory.total', '--format=csv,noheader,nounits', '-i', String(gpuIndex(device))];
  const answer = await promisify(execFile)('nvidia-smi', query).catch(() => undefined);
  const megabytes = Number.parseInt(answer?.stdout ?? '', 10);
  return (megabytes > 0 ? megabytes * 2 ** 20 : unknownGpuBytes) * 0.85;
}

function gpuIndex(device: `cuda:${number}`): number {
  return Number(device.slice('cuda:'.length));
}
