import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { shareOf, usableCores, usableMemoryBytes } from './own-share';

describe(shareOf.name, () => {
  const roots: string[] = [];
  afterAll(() => roots.forEach((root) => rmSync(root, { recursive: true })));
  const machine = (files: Record<string, string>): string => {
    const root = mkdtempSync(join(tmpdir(), 'darkroom-share-'));
    roots.push(root);
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), `${content}\n`);
    }
    return root;
  };
  const none = { cpus: Infinity, memoryBytes: Infinity };

  it.each([
    ['has no control groups', {}, none],
    [
      'is a container of version 2',
      { 'proc/self/cgroup': '0::/', 'sys/fs/cgroup/cpu.max': '150000 100000', 'sys/fs/cgroup/memory.max': '4096' },
      { cpus: 1.5, memoryBytes: 4096 },
    ],
    [
      'is limited by a slice above its service',
      {
        'proc/self/cgroup': '0::/a.slice/b.service',
        'sys/fs/cgroup/a.slice/cpu.max': '200000 100000',
        'sys/fs/cgroup/a.slice/memory.max': '8192',
        'sys/fs/cgroup/a.slice/b.service/cpu.max': 'max 100000',
        'sys/fs/cgroup/a.slice/b.service/memory.max': 'max',
      },
      { cpus: 2, memoryBytes: 8192 },
    ],
    [
      'is a container of version 1, whose path is the host’s',
      {
        'proc/self/cgroup': '4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/',
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '50000',
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000',
        'sys/fs/cgroup/memory/memory.limit_in_bytes': '4096',
      },
      { cpus: 0.5, memoryBytes: 4096 },
    ],
    [
      'has no limit in version 1',
      {
        'proc/self/cgroup': '1:cpu:/',
        'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1',
        'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000',
      },
      none,
    ],
  ])('reads a machine that %s', (_, files, expected) => {
    expect(shareOf(machine(files as Record<string, string>))).toEqual(expected);
  });

  it('never asks for more than the machine has, and always for a core', () => {
    expect([usableCores(none), usableMemoryBytes(none)]).toEqual([availableParallelism(), totalmem()]);
    expect([usableCores({ ...none, cpus: 0.5 }), usableMemoryBytes({ ...none, memoryBytes: 4096 })]).toEqual([1, 4096]);
  });
});
