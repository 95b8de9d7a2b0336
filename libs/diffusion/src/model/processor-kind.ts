import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';

/**
 * The fields of /proc/cpuinfo by which kernels are chosen: those of x86, of ARM, and of the other processors of Linux.
 */
const fields = new Set([
  'vendor_id',
  'cpu family',
  'model',
  'model name',
  'stepping',
  'flags',
  'CPU implementer',
  'CPU architecture',
  'CPU variant',
  'CPU part',
  'CPU revision',
  'Features',
  'cpu',
  'features',
  'isa',
  'uarch',
]);

/**
 * Equal for processors on which ONNX Runtime chooses the same kernels, and so arranges weights alike. Virtual
 * machines often have one name for processors with different instructions, so it has the instructions where
 * the system tells them.
 */
export async function processorKind(): Promise<string[]> {
  const cpuinfo = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  return [...new Set([process.arch, ...cpus().map(({ model }) => model), ...kindOf(cpuinfo)])];
}

/** What a /proc/cpuinfo says of the kinds of its cores, each line once. */
export function kindOf(cpuinfo: string): string[] {
  const lines = cpuinfo.split('\n').map((line) => line.replace(/\s+/g, ' '));
  return [...new Set(lines.filter((line) => fields.has(line.split(':')[0].trim())))].sort();
}
