import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Device, executionProviders, ModelSession } from '@app/diffusion';
import { denoiserOn, graphOfDenoiser } from './denoisers';
import type { GpuBench } from './gpu-section';
import { someRows, textTokens } from './inputs';
import { type ModelName, modelOf } from './models';

/** Nodes of one operator on one provider, as ONNX Runtime ran them in one call. */
export interface OperatorSum {
  operator: string;
  provider: string;
  count: number;
  ms: number;
}

interface Event {
  cat: string;
  name: string;
  dur: number;
  args: { op_name?: string; provider?: string };
}

/** What the nodes of a denoiser take in its second call with so many rows, after ONNX Runtime's optimisations. */
export async function profileOf(
  { device, ...making }: Pick<GpuBench, 'size' | 'weights'> & { device: Device },
  { model, pixels, count }: { model: ModelName; pixels: number; count: number },
): Promise<OperatorSum[]> {
  const folder = await modelOf(model, making);
  const graph = await graphOfDenoiser(folder, device, 'drawn');
  const own = mkdtempSync(join(making.weights, 'profile-'));
  try {
    writeFileSync(join(own, 'graph.onnx'), graph.bytes);
    const session = await ModelSession.openFile(join(own, 'graph.onnx'), {
      ...{ executionProviders: executionProviders(device), enableMemPattern: false },
      ...{ enableProfiling: true, profileFilePrefix: join(own, 'profile') },
      extra: { session: { model_external_initializers_file_folder_path: graph.folder } },
    });
    const denoiser = denoiserOn(folder, session, device);
    const { rows, shape } = someRows(folder, denoiser, { tokens: textTokens[model], pixels, count });
    for (let call = 0; call < 2; call++) await denoiser.predict(rows, shape);
    await denoiser.release();
    const name = readdirSync(own).find((each) => each.startsWith('profile'))!;
    return sumsOf(JSON.parse(readFileSync(join(own, name), 'utf8')) as Event[]);
  } finally {
    rmSync(own, { recursive: true });
  }
}

function sumsOf(events: readonly Event[]): OperatorSum[] {
  const nodes = events.filter(({ cat, name }) => cat === 'Node' && name.endsWith('_kernel_time'));
  // Both calls have all nodes; the second half is of the second.
  const sums = new Map<string, OperatorSum>();
  for (const { dur, args } of nodes.slice(nodes.length / 2)) {
    const [operator, provider] = [args.op_name ?? '?', (args.provider ?? '?').replace('ExecutionProvider', '')];
    const sum = sums.get(`${operator} ${provider}`) ?? { operator, provider, count: 0, ms: 0 };
    sums.set(`${operator} ${provider}`, { ...sum, count: sum.count + 1, ms: sum.ms + dur / 1000 });
  }
  return [...sums.values()].sort((a, b) => b.ms - a.ms);
}
