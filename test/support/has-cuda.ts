import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Whether there is a GPU and the execution provider is installed. */
export function hasCuda(): boolean {
  const runtime = join(require.resolve('onnxruntime-node'), '../../bin/napi-v6', process.platform, process.arch);
  return existsSync('/dev/nvidia0') && existsSync(join(runtime, 'libonnxruntime_providers_cuda.so'));
}
