import { existsSync } from 'node:fs';

/** Whether Vulkan was given a device, real or in software, and its library: see `scripts/test.mjs`. */
export function hasWebgpu(): boolean {
  return process.env.VK_ICD_FILENAMES !== undefined || existsSync('/dev/dri/renderD128');
}
