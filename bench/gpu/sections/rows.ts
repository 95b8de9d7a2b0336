import { OutOfMemoryError } from '@app/diffusion';
import type { Denoiser } from '../../../libs/diffusion/src/denoisers/denoiser';
import { figure, type Goal, interleave, median, msOf, ratios } from '../../section';
import { TorchSide } from '../eager';
import { type GpuBench, type GpuSection, edgeOf, inMs, namedRows, secondsLeft, tellUnlessFinite } from '../gpu-section';
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
const roundsOf = { full: { fewest: 3, most: 12, seconds: 2 }, tiny: { fewest: 1, most: 1, seconds: 2 } };

/** Seconds that a number of rows needs at least. */
const fewestSeconds = 4;

/** A call of so many rows, in milliseconds, and those of them inside ONNX Runtime. */
interface OwnCall {
  count: number;
  ours: () => Promise<{ ms: number; insideMs: number }>;
}

/** Calls of a denoiser by their number of rows. */
export function rowCurve({ model, pixels, counts, goals = {}, seconds, torch }: RowCurve): GpuSection {
  const isCompiled = torch === 'compiled';
  return {
    name: `${isCompiled ? 'compiled' : 'rows'}-${model}-${pixels}`,
    title: `Rows of ${model} at ${pixels}${isCompiled ? ', beside torch.compile' : ''}`,
    about: torch
      ? `A call of the denoiser with its packing and its transfers from the host and to it, and what a row takes beside others. Then, with \`--python\`, the call divided by one of PyTorch, ${torch}, in turns: PyTorch’s inputs are on the card already, and its output stays there.`
      : 'A call of the denoiser with its packing and host transfers, and what a row takes beside others.',
    seconds,
    async measure(bench) {
      const side = torch && TorchSide.start(bench);
      const size = edgeOf(bench, pixels);
      const folder = await modelOf(model, bench);
      const denoiser = await folder.denoiser.open({ device: bench.device });
      const of = { tokens: textTokens[model], pixels: size, count: Math.max(...counts) };
      const { rows, shape } = someRows(folder, denoiser, of);
      tellUnlessFinite(bench, `${model}’s output`, await denoiser.predict(rows.slice(0, 1), shape));
      const calls = counts.map((count) => ({
        count,
        ours: () => timed(denoiser, () => denoiser.predict(rows.slice(0, count), shape)),
      }));
      await tellAlone(bench, calls);
      if (side) {
        const loaded = side.ask('load', { name: model, tokens: of.tokens, compile: isCompiled });
        const problem = await loaded.then(
          () => undefined,
          ({ message }: Error) => message,
        );
        if (problem === undefined) await tellBeside(bench, calls, { side, pixels: size, goals });
        else bench.tell(`Nothing beside PyTorch: ${problem}`);
        side.close();
      }
      await denoiser.release();
    },
  };
}

async function timed({ spent }: Denoiser, work: () => Promise<unknown>): Promise<{ ms: number; insideMs: number }> {
  const before = spent.runMs;
  const ms = await msOf(work);
  return { ms, insideMs: spent.runMs - before };
}

/** Before PyTorch is there, so that nothing it does can lose these. */
async function tellAlone(bench: GpuBench, calls: readonly OwnCall[]): Promise<void> {
  let alone: number | undefined;
  for (const { count, ours } of calls)
    try {
      const times = (await inTurns(bench, { ours })).ours;
      const ms = median(times.map((each) => each.ms));
      const insideMs = median(times.map((each) => each.insideMs));
      bench.tell(`${namedRows(count)}: ${inMs(ms)}, of which ${inMs(insideMs)} in ONNX Runtime.`);
      if (count === 1) alone = ms;
      else if (alone !== undefined)
        bench.tell({ ...figure(`a row of ${count} / of 1`, [ms / count / alone]), detail: inMs(ms / count) });
    } catch (error) {
      if (!(error instanceof OutOfTimeError || error instanceof OutOfMemoryError)) throw error;
      bench.tell(`${namedRows(count)}: left out: ${error.message}`);
    }
}

async function tellBeside(
  bench: GpuBench,
  calls: readonly OwnCall[],
  { side, pixels, goals }: { side: TorchSide; pixels: number; goals: Readonly<Record<number, Goal>> },
): Promise<void> {
  for (const { count, ours } of calls)
    try {
      const theirs = () => side.ask('call', { rows: count, pixels });
      const times = await inTurns(bench, { ours, theirs });
      const [own, other] = [times.ours.map(({ ms }) => ms), times.theirs.map(({ ms }) => ms)];
      bench.tell({
        ...figure(`${namedRows(count)}: a call / PyTorch’s`, ratios(own, other), goals[count]),
        detail: `${inMs(median(own))} / ${inMs(median(other))}`,
      });
    } catch (error) {
      const { message } = error as Error;
      const whose = error instanceof OutOfMemoryError ? 'on our side: ' : '';
      bench.tell(`${namedRows(count)}, beside PyTorch: left out: ${whose}${message}`);
    }
}

class OutOfTimeError extends Error {}

/** @throws OutOfTimeError if the section's end is too near */
async function inTurns<S extends Record<string, () => Promise<unknown>>>(bench: GpuBench, sides: S) {
  const { fewest, most, seconds } = roundsOf[bench.size];
  const requireSeconds = (needed: number): void => {
    if (secondsLeft(bench) < needed) throw new OutOfTimeError('for time.');
  };
  const once = () =>
    msOf(async () => {
      for (const call of Object.values(sides)) await call();
    });
  requireSeconds(fewestSeconds);
  // The first call of a size plans it, and PyTorch may compile for it.
  await once();
  const round = await once();
  requireSeconds((fewest * round) / 1000);
  const rounds = Math.min(most, Math.max(fewest, Math.floor((1000 * seconds) / round)));
  return interleave(sides, rounds, { warmUp: false });
}
