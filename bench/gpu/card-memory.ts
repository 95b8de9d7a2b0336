import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type Device, gpuIndex, providerOf } from '@app/diffusion';

/** The most memory of the card that is in use while something is done, by all programs; undefined without a card. */
export async function peakOfCard<T>(device: Device, work: () => Promise<T>): Promise<{ result: T; peak?: string }> {
  if (providerOf(device) !== 'cuda') return { result: await work() };
  const id = String(gpuIndex(device as `cuda:${number}`));
  const asked = ['--query-gpu=memory.used', '--format=csv,noheader,nounits', '--loop-ms=200', `--id=${id}`];
  const child = spawn('nvidia-smi', asked, { stdio: ['ignore', 'pipe', 'ignore'] });
  let most = 0;
  child.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', (line) => (most = Math.max(most, Number(line) || 0)));
  try {
    const result = await work();
    return most > 0 ? { result, peak: `${(most / 1024).toFixed(1)} GiB` } : { result };
  } finally {
    child.kill();
  }
}
