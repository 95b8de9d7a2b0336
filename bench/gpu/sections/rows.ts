import { OutOfMemoryError } from '@app/diffusion';
import { figure, type Goal, interleave, median, msOf, ratios } from '../../section';
import { TorchSide } from '../eager';
import { type GpuBench, type GpuSection, inMs, secondsLeft } from '../gpu-section';
import { someRows, textTokens } from '../inputs';
import { type ModelName, modelOf } from '../models';

interface RowCurve {
  model: ModelName;
  pixels: number;
  counts: readonly number[];
  /** Of a call against PyTorch's, by its number of rows. */
  goals?: Readonly<Record<number, Goal>>;
  seconds: number;
  /** Whether PyTorch takes part, and how. */
  torch?: 'eager' | 'compiled';
}

/** Fewest and most rounds, and the seconds that those of one number of rows may take; one is enough for a dry run. */
const roundsOf = { full: { fewest: 3, most: 15, seconds: 5 }, tiny: { fewest: 1, most: 1, seconds: 5 } };

/** Calls of a denoiser by their number of rows. */
export function rowCurve({ model, pixels, counts, goals = {}, seconds, torch }: RowCurve): GpuSection {
  const beside = torch && `PyTorch, ${torch}`;
  return {
    name: `${torch === 'compiled' ? 'compiled' : 'rows'}-${model}-${pixels}`,
    title: `Rows of ${model} at ${pixels}${torch === 'compiled' ? ', beside torch.compile' : ''}`,
    about: beside
      ? `A call of the denoiser, packed and with its host transfers, divided by one of ${beside}, in turns. Then what a row takes beside others.`
      : 'What a row takes beside others.',
    seconds,
    async measure(bench) {
      const size = bench.size === 'tiny' ? 64 : pixels;
      const folder = await modelOf(model, bench);
      const startedAt = Date.now();
      const denoiser = await folder.denoiser.open({ device: bench.device });
      bench.tell(`Loaded in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.`);
      const side = torch && (await TorchSide.load(bench, { name: model, compile: torch === 'compiled' }));
      const alone: number[] = [];
      for (const count of counts) {
        const { rows, shape } = someRows(folder, denoiser, { tokens: textTokens[model], pixels: size, count });
        const ours = () => denoiser.predict(rows, shape);
        const calls = {
          ours: () => msOf(ours),
          ...(side && { theirs: async () => (await side.ask('call', { rows: count, pixels: size })).ms }),
        };
        const times = await inTurns(bench, calls);
        if (!times) {
          bench.tell(`${namedRows(count)}: left out, for time or memory.`);
          continue;
        }
        alone.push(median(times.ours) / count);
        const { runs, runMs } = denoiser.spent;
        const before = runs > 0 ? runMs : 0;
        await ours();
        const inside = denoiser.spent.runMs - before;
        tellCall(bench, { count, times, inside, goal: goals[count], alone });
      }
      side?.close();
      await denoiser.release();
    },
  };
}

const namedRows = (count: number): string => `${count} ${count === 1 ? 'row' : 'rows'}`;

type Times = { ours: number[]; theirs?: number[] };

/** Undefined where there is not enough time or memory. */
async function inTurns(
  bench: GpuBench,
  calls: { ours: () => Promise<number>; theirs?: () => Promise<number> },
): Promise<Times | undefined> {
  try {
    // The first call of a size plans it.
    const first = await msOf(async () => {
      for (const call of Object.values(calls)) await call();
    });
    const round = await msOf(async () => {
      for (const call of Object.values(calls)) await call();
    });
    const { fewest, most, seconds } = roundsOf[bench.size];
    if (secondsLeft(bench) < (fewest * round + first) / 1000) return undefined;
    const rounds = Math.min(most, Math.max(fewest, Math.floor((1000 * seconds) / round)));
    return await interleave(calls as Required<typeof calls>, rounds, { warmUp: false });
  } catch (error) {
    if (error instanceof OutOfMemoryError || /out of memory/i.test((error as Error).message)) return undefined;
    throw error;
  }
}

function tellCall(
  { tell }: GpuBench,
  {
    count,
    times,
    inside,
    goal,
    alone,
  }: { count: number; times: Times; inside: number; goal: Goal | undefined; alone: number[] },
): void {
  const ms = median(times.ours);
  const detail = `${inMs(ms)}, of which ${inMs(inside)} in ONNX Runtime`;
  if (times.theirs)
    tell({
      ...figure(`${namedRows(count)}: a call / PyTorch’s`, ratios(times.ours, times.theirs), goal),
      detail: `${detail} / ${inMs(median(times.theirs))}`,
    });
  else tell(`${namedRows(count)}: ${detail}`);
  if (alone.length > 1)
    tell({ ...figure(`a row of ${count} / of ${1}`, [alone.at(-1)! / alone[0]]), detail: inMs(alone.at(-1)!) });
}
