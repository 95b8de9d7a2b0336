import { OutOfMemoryError } from '@app/diffusion';
import type { Denoiser } from '../../../libs/diffusion/src/denoisers/denoiser';
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
const roundsOf = { full: { fewest: 3, most: 15, seconds: 4 }, tiny: { fewest: 1, most: 1, seconds: 4 } };

/** Seconds that a number of rows needs at least. */
const fewestSeconds = 4;

/** Calls of a denoiser by their number of rows. */
export function rowCurve({ model, pixels, counts, goals = {}, seconds, torch }: RowCurve): GpuSection {
  return {
    name: `${torch === 'compiled' ? 'compiled' : 'rows'}-${model}-${pixels}`,
    title: `Rows of ${model} at ${pixels}${torch === 'compiled' ? ', beside torch.compile' : ''}`,
    about: torch
      ? `A call of the denoiser, packed and with its host transfers; with \`--python\` divided by one of PyTorch, ${torch}, in turns. Then what a row takes beside others.`
      : 'A call of the denoiser, and what a row takes beside others.',
    seconds,
    async measure(bench) {
      const size = bench.size === 'tiny' ? 64 : pixels;
      const folder = await modelOf(model, bench);
      const loading = torch && TorchSide.load(bench, { name: model, compile: torch === 'compiled' });
      const startedAt = Date.now();
      const denoiser = await folder.denoiser.open({ device: bench.device });
      bench.tell(`Loaded in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.`);
      const side = await loading;
      let alone = 0;
      for (const count of counts) {
        const { rows, shape } = someRows(folder, denoiser, { tokens: textTokens[model], pixels: size, count });
        const calls: Calls = {
          ours: () => timed(denoiser, () => denoiser.predict(rows, shape)),
          ...(side && { theirs: () => side.ask('call', { rows: count, pixels: size }) }),
        };
        const times = secondsLeft(bench) > fewestSeconds ? await inTurns(bench, calls) : undefined;
        if (!times) {
          bench.tell(`${namedRows(count)}: left out, for time or memory.`);
          continue;
        }
        tellCall(bench, { count, times, goal: goals[count] });
        const ms = median(times.ours.map((each) => each.ms)) / count;
        if (count === 1) alone = ms;
        else if (alone > 0) bench.tell({ ...figure(`a row of ${count} / of 1`, [ms / alone]), detail: inMs(ms) });
      }
      side?.close();
      await denoiser.release();
    },
  };
}

const namedRows = (count: number): string => `${count} ${count === 1 ? 'row' : 'rows'}`;

interface Calls {
  ours: () => Promise<{ ms: number; insideMs: number }>;
  theirs?: () => Promise<{ ms: number }>;
}

interface Times {
  ours: { ms: number; insideMs: number }[];
  theirs?: { ms: number }[];
}

async function timed({ spent }: Denoiser, work: () => Promise<unknown>): Promise<{ ms: number; insideMs: number }> {
  const before = spent.runMs;
  const ms = await msOf(work);
  return { ms, insideMs: spent.runMs - before };
}

/** Undefined where there is not enough time or memory. */
async function inTurns(bench: GpuBench, calls: Calls): Promise<Times | undefined> {
  try {
    const once = () =>
      msOf(async () => {
        await calls.ours();
        await calls.theirs?.();
      });
    // The first call of a size plans it.
    const [first, round] = [await once(), await once()];
    const { fewest, most, seconds } = roundsOf[bench.size];
    if (secondsLeft(bench) < (fewest * round + first) / 1000) return undefined;
    const rounds = Math.min(most, Math.max(fewest, Math.floor((1000 * seconds) / round)));
    return await interleave(calls as Required<Calls>, rounds, { warmUp: false });
  } catch (error) {
    if (error instanceof OutOfMemoryError || /out of memory/i.test((error as Error).message)) return undefined;
    throw error;
  }
}

function tellCall(
  { tell }: GpuBench,
  { count, times: { ours, theirs }, goal }: { count: number; times: Times; goal: Goal | undefined },
): void {
  const own = ours.map(({ ms }) => ms);
  const detail = `${inMs(median(own))}, of which ${inMs(median(ours.map(({ insideMs }) => insideMs)))} in ONNX Runtime`;
  if (!theirs) return tell(`${namedRows(count)}: ${detail}`);
  const other = theirs.map(({ ms }) => ms);
  tell({
    ...figure(`${namedRows(count)}: a call / PyTorch’s`, ratios(own, other), goal),
    detail: `${detail} / ${inMs(median(other))}`,
  });
}
