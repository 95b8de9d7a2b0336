import { providerOf } from '@app/diffusion';
import { TorchSide } from '../eager';
import { type GpuBench, type GpuSection, edgeOf, inMs, namedRows, secondsLeft } from '../gpu-section';
import { textTokens } from '../inputs';
import { type ModelName } from '../models';
import { type OperatorSum, profileOf } from '../profile';

interface ProfiledCall {
  model: ModelName;
  pixels: number;
  count: number;
}

const calls: ProfiledCall[] = [
  { model: 'sd15', pixels: 512, count: 1 },
  { model: 'sd15', pixels: 512, count: 8 },
  { model: 'klein', pixels: 1024, count: 1 },
];
const shown = 14;
/** Letters of a kernel's name that tell which it is. */
const nameLength = 90;

export const profile: GpuSection = {
  name: 'profile',
  title: 'What a call is made of',
  about:
    'ONNX Runtime’s profile of a denoiser’s second call: nodes after its optimisations, by operator and provider. It notes when kernels are launched, so they are launched one at a time here (`CUDA_LAUNCH_BLOCKING`): times are of the card and of launching, and their sum is more than a call takes. An `If` is a node without a time, as its own has that of its branch, which is counted by itself. Then the kernels of PyTorch’s call, as its own profiler sees them.',
  seconds: 50,
  env: { CUDA_LAUNCH_BLOCKING: '1' },
  async measure(bench) {
    for (const { pixels, ...call } of calls) {
      const named = `${call.model} at ${pixels}, ${namedRows(call.count)}`;
      if (secondsLeft(bench) < 10) bench.tell(`${named}: left out, for time.`);
      else tellSums(bench, named, await profileOf(bench, { ...call, pixels: edgeOf(bench, pixels) }));
    }
    await tellKernels(bench, calls[1]);
  },
};

export function tellSums(
  { device, tell }: Pick<GpuBench, 'device' | 'tell'>,
  named: string,
  sums: readonly OperatorSum[],
): void {
  const outside = sums.filter(({ operator }) => operator !== 'If');
  const total = (of: readonly OperatorSum[], key: 'count' | 'ms'): number =>
    of.reduce((sum, each) => sum + each[key], 0);
  const copies = sums.filter(({ operator }) => operator.startsWith('Memcpy'));
  const fallen = sums.filter(({ operator, provider }) => provider === 'CPU' && !operator.startsWith('Memcpy'));
  tell(
    `**${named}**: ${total(sums, 'count')} nodes, ${inMs(total(outside, 'ms'))}; ${total(copies, 'count')} copies between host and card, ${inMs(total(copies, 'ms'))}.`,
  );
  if (providerOf(device) !== 'cpu' && fallen.length > 0)
    tell(`On the processor: ${fallen.map(({ operator, count }) => `${count} ${operator}`).join(', ')}.`);
  for (const { operator, provider, count, ms } of outside.slice(0, shown))
    tell(`${operator} (${provider}): ${count} nodes, ${inMs(ms)}, ${((100 * ms) / total(outside, 'ms')).toFixed(1)} %`);
}

async function tellKernels(bench: GpuBench, { model, pixels, count }: ProfiledCall): Promise<void> {
  const side = TorchSide.start(bench);
  if (!side) return;
  const size = { rows: count, pixels: edgeOf(bench, pixels) };
  await side.ask('load', { name: model, tokens: textTokens[model] });
  await side.ask('call', size);
  const { nodes } = await side.ask('profile', size);
  side.close();
  const total = nodes.reduce((sum, { ms }) => sum + ms, 0);
  bench.tell(`**PyTorch, ${model} at ${pixels}, ${count} rows**: ${inMs(total)} in kernels.`);
  for (const node of nodes.slice(0, shown))
    bench.tell(
      `\`${node.name.slice(0, nameLength)}\`: ${node.count}, ${inMs(node.ms)}, ${((100 * node.ms) / total).toFixed(1)} %`,
    );
}
