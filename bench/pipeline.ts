import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ClipTokenizer, StableDiffusionPipeline } from '@app/diffusion';
import type { LoadOptions } from '@app/diffusion';
import { PythonLoop } from './python/python-loop';
import type { LoopTime } from './python/python-loop';
import { interleave, median } from './rounds';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'models/shapes' },
    device: { type: 'string', default: 'cpu' },
    threads: { type: 'string', default: '2' },
    steps: { type: 'string', default: '20' },
    batches: { type: 'string', default: '1,4' },
    rounds: { type: 'string', default: '7' },
    python: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const prompt = 'a red circle on a blue background';
const guidanceScale = 7.5;

/** Draws the same request repeatedly, alternating with Python if an interpreter is given, and prints medians. */
async function main(): Promise<void> {
  const [steps, threads, rounds] = [options.steps, options.threads, options.rounds].map(Number);
  const device = options.device as LoadOptions['device'];
  const pipeline = await StableDiffusionPipeline.load(options.model, { device, intraOpNumThreads: threads });
  const tokenizer = await ClipTokenizer.load(join(options.model, 'tokenizer'));
  const inputIds = ['', prompt].map((text) => tokenizer.frame(tokenizer.tokenize(text)));
  const python = options.python ? await PythonLoop.start(options.python, options.model, threads) : undefined;
  const { nativeSize, vaeScaleFactor } = pipeline.facts;

  const lines: Line[] = [];
  for (const batch of options.batches.split(',').map(Number)) {
    const ours = () => draw(pipeline, batch, steps);
    if (python) {
      const size = nativeSize / vaeScaleFactor;
      const theirs = () => python.run({ inputIds, batch, steps, guidanceScale, size });
      const times = await interleave({ ours, theirs }, rounds);
      lines.push(lineOf(batch, times.ours, times.theirs));
    } else lines.push(lineOf(batch, (await interleave({ ours }, rounds)).ours));
  }
  python?.stop();
  await pipeline.release();
  if (options.json) process.stdout.write(`${JSON.stringify(lines)}\n`);
  else print(lines);
}

/** A batch's medians, and the ratios of each round. */
export interface Line {
  batch: number;
  loopMs: number;
  runMs: number;
  /** The loop divided by the time inside the U-Net. */
  loopShares: number[];
  wholeMs: number;
  /** Percent of the whole request outside of all sessions. */
  wholeOutside: number;
  pythonMs?: number;
  /** Our loop divided by Python's. */
  againstPython?: number[];
}

function lineOf(batch: number, ours: readonly (LoopTime & WholeTime)[], theirs?: readonly LoopTime[]): Line {
  const of = (value: (time: LoopTime & WholeTime) => number) => median(ours.map(value));
  return {
    batch,
    loopMs: of((time) => time.loopMs),
    runMs: of((time) => time.runMs),
    loopShares: ours.map((time) => time.loopMs / time.runMs),
    wholeMs: of((time) => time.wholeMs),
    wholeOutside: of((time) => 100 * (1 - time.wholeRunMs / time.wholeMs)),
    ...(theirs && {
      pythonMs: median(theirs.map((time) => time.loopMs)),
      againstPython: theirs.map((time, round) => ours[round].loopMs / time.loopMs),
    }),
  };
}

/** Time from the request to decoded pictures, and the part of it inside ONNX Runtime. */
interface WholeTime {
  wholeMs: number;
  wholeRunMs: number;
}

async function draw(pipeline: StableDiffusionPipeline, batch: number, steps: number): Promise<LoopTime & WholeTime> {
  const { nativeSize: size } = pipeline.facts;
  const seeds = Array.from({ length: batch }, (_, i) => i);
  const runMs = () => Object.values(pipeline.spent).reduce((sum, part) => sum + part.runMs, 0);
  const [start, runStart] = [performance.now(), runMs()];
  const request = { prompt, width: size, height: size, numInferenceSteps: steps, guidanceScale, seeds };
  const trajectories = await pipeline.prepare(request);
  const [loopStart, loopRunStart] = [performance.now(), runMs()];
  while (!trajectories[0].done) await pipeline.step(trajectories);
  const [loopEnd, loopRunEnd] = [performance.now(), runMs()];
  for (const trajectory of trajectories) await pipeline.decode(trajectory);
  return {
    loopMs: loopEnd - loopStart,
    runMs: loopRunEnd - loopRunStart,
    wholeMs: performance.now() - start,
    wholeRunMs: runMs() - runStart,
  };
}

function print(lines: readonly Line[]): void {
  const heads = ['batch', 'loop ms', 'run ms', 'loop / run', 'outside %', 'whole ms', 'outside %'];
  const cells = lines.map(({ batch, loopMs, runMs, loopShares, wholeMs, wholeOutside, pythonMs, againstPython }) => [
    String(batch),
    loopMs.toFixed(1),
    runMs.toFixed(1),
    median(loopShares).toFixed(3),
    (100 * (1 - 1 / median(loopShares))).toFixed(2),
    wholeMs.toFixed(1),
    wholeOutside.toFixed(2),
    ...(againstPython ? [`${pythonMs!.toFixed(1)} ms, ours / python ${median(againstPython).toFixed(3)}`] : []),
  ]);
  for (const line of [options.python ? [...heads, 'python'] : heads, ...cells])
    process.stdout.write(`${line.map((cell) => cell.padStart(10)).join('  ')}\n`);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
