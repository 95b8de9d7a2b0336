import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ClipTokenizer, StableDiffusionPipeline } from '@app/diffusion';
import type { LoadOptions } from '@app/diffusion';
import { PythonLoop } from './python/python-loop';
import type { LoopTime } from './python/python-loop';
import { median } from './median';

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'models/shapes' },
    device: { type: 'string', default: 'cpu' },
    threads: { type: 'string', default: '2' },
    steps: { type: 'string', default: '20' },
    batches: { type: 'string', default: '1,4' },
    rounds: { type: 'string', default: '7' },
    python: { type: 'string' },
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
  const inputIds = ['', prompt].map((text) => tokenizer.encode(text).inputIds);
  const python = options.python ? await PythonLoop.start(options.python, options.model, threads) : undefined;
  const { nativeSize, vaeScaleFactor } = pipeline.facts;

  print(['batch', 'loop ms', 'run ms', 'loop / run', 'outside %', 'whole ms', 'outside %'], python && 'python');
  for (const batch of options.batches.split(',').map(Number)) {
    const ours: (LoopTime & WholeTime)[] = [];
    const theirs: LoopTime[] = [];
    // The first round warms caches up and does not count.
    for (let round = 0; round <= rounds; round++) {
      ours[round] = await draw(pipeline, batch, steps);
      if (!python) continue;
      theirs[round] = await python.run({ inputIds, batch, steps, guidanceScale, size: nativeSize / vaeScaleFactor });
    }
    const of = (value: (time: LoopTime & WholeTime) => number) => median(ours.slice(1).map(value));
    const loopMs = of((time) => time.loopMs);
    const pythonMs = median(theirs.slice(1).map((time) => time.loopMs));
    print(
      [
        String(batch),
        loopMs.toFixed(1),
        of((time) => time.runMs).toFixed(1),
        of((time) => time.loopMs / time.runMs).toFixed(3),
        of((time) => 100 * (1 - time.runMs / time.loopMs)).toFixed(2),
        of((time) => time.wholeMs).toFixed(1),
        of((time) => 100 * (1 - time.wholeRunMs / time.wholeMs)).toFixed(2),
      ],
      python && `${pythonMs.toFixed(1)} ms, ours / python ${(loopMs / pythonMs).toFixed(3)}`,
    );
  }
  python?.stop();
  await pipeline.release();
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

function print(cells: string[], python: string | undefined): void {
  const line = [...cells.map((cell) => cell.padStart(10)), ...(python ? [python] : [])].join('  ');
  process.stdout.write(`${line}\n`);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
