import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, join } from 'node:path';

/** What a control group (a container, a systemd service) may use of its machine; Infinity where it says nothing. */
export interface Share {
  cpus: number;
  memoryBytes: number;
}

/** Where control groups are mounted: version 2 in one tree, version 1 in one for each controller. */
const mounts = { unified: ['sys/fs/cgroup', 'sys/fs/cgroup/unified'], of: (name: string) => [`sys/fs/cgroup/${name}`] };

/**
 * The limits of this process's control groups and of all above them: Node counts no quota of the processor and sees
 * only the innermost limit of memory. A container with its own root at the mount does not see the path that the kernel
 * tells; then the root says it.
 * Sources: https://docs.kernel.org/admin-guide/cgroup-v2.html and cgroup-v1, `cpu.max`, `cpu.cfs_quota_us`
 * @param root of the file system
 */
export function shareOf(root = '/'): Share {
  const share = { cpus: Infinity, memoryBytes: Infinity };
  for (const line of read(join(root, 'proc/self/cgroup')).split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    const places = controllers === '' ? mounts.unified : [controllers, ...controllers.split(',')].flatMap(mounts.of);
    for (const place of places) for (const folder of upwards(join(root, place), path)) narrow(share, folder);
  }
  return share;
}

/** Cores that this process may keep busy: the kernel would only stop further threads for a part of the time. */
export function usableCores(share = shareOf()): number {
  return Math.min(availableParallelism(), Math.max(1, Math.floor(share.cpus)));
}

/** Memory that this process may have. */
export function usableMemoryBytes(share = shareOf()): number {
  return Math.min(totalmem(), share.memoryBytes);
}

/** A folder of a mount and all above it, up to the mount. */
function upwards(mount: string, path: string): string[] {
  const folders = [mount];
  for (let folder = join(mount, path); folder.length > mount.length; folder = dirname(folder)) folders.push(folder);
  return folders;
}

function narrow(share: Share, folder: string): void {
  const [quota, period] = read(join(folder, 'cpu.max')).split(' ').map(Number);
  const [oldQuota, oldPeriod] = ['quota', 'period'].map((name) => Number(read(join(folder, `cpu.cfs_${name}_us`))));
  for (const cpus of [quota / period, oldQuota / oldPeriod]) if (cpus > 0) share.cpus = Math.min(share.cpus, cpus);
  for (const name of ['memory.max', 'memory.limit_in_bytes']) {
    const bytes = Number(read(join(folder, name)));
    if (bytes > 0) share.memoryBytes = Math.min(share.memoryBytes, bytes);
  }
}

/** Empty if there is no file. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}
