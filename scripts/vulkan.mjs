import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Where Debian's package `chromium` keeps a software device of Vulkan, and Vulkan's library. */
const chromium = '/usr/lib/chromium';

/**
 * The environment in which WebGPU finds a software device, where Chromium brings one: for tests, because it is slower
 * than the CPU without it. Empty if Vulkan has a device already, or there is none.
 */
export function softwareVulkan() {
  const device = join(chromium, 'vk_swiftshader_icd.json');
  const { VK_ICD_FILENAMES, LD_LIBRARY_PATH } = process.env;
  if (VK_ICD_FILENAMES !== undefined || !existsSync(device)) return {};
  const libraries = [LD_LIBRARY_PATH, chromium].filter(Boolean).join(':');
  return { VK_ICD_FILENAMES: device, LD_LIBRARY_PATH: libraries };
}
