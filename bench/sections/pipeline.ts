import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Pipeline } from '@app/diffusion';
import { type BenchOptions, type Figure, figure, interleave, median, ratios, type Section } from '../section';

const prompt = 'a red circle on a blue background';
const [steps, guidanceScale] = [20, 7.5];

/** Milliseconds of the denoising loop, and the part of them inside the denoiser. */
interface LoopTime {
  loopMs: number;
  runMs: number;
}

/** Milliseconds from the prompt to decoded pictures, and the part of them inside any session. */
interface WholeTime extends LoopTime {
  wholeMs: number;
  wholeRunMs: number;
}

export const pipeline: Section = {
  name: 'pipeline',
  title: 'The library’s own loop',
  about:
    'One request of so many pictures by `libs/diffusion` alone, all steps, divided by the time inside the U-Net’s `session.run`: what schedulers, guidance and copies add. ' +
    'With `--python`, also divided by the loop of diffusers with torch, in float32 and eager.',
  rounds: 5,
  async measure(options) {
    const { model, device, threads, rounds } = options;
    const ours = await Pipeline.load(model, { device, intraOpNumThreads: threads });
    const python = options.python ? await startPython(options.python, options, ours.facts.nativeSize) : undefined;
    const figures: Figure[] = [];
    for (const batch of [1, 4, 8]) {
      const times = await interleave<Record<'ours' | 'theirs', () => Promise<LoopTime>>>(
        { ours: () => draw(ours, batch), theirs: () => python?.run(batch) ?? Promise.resolve({ loopMs: 0, runMs: 0 }) },
        rounds,
      );
      figures.push(...figuresOf(batch, times.ours as WholeTime[], python && times.theirs));
    }
    python?.stop();
    await ours.release();
    return figures;
  },
};

function figuresOf(batch: number, ours: readonly WholeTime[], theirs?: readonly LoopTime[]): Figure[] {
  const pictures = batch === 1 ? '1 picture' : `${batch} pictures`;
  const loops = ours.map(({ loopMs }) => loopMs);
  const outside = ours.map(({ wholeMs, wholeRunMs }) => 100 * (1 - wholeRunMs / wholeMs));
  const middle = (values: number[]) => median(values).toFixed(1);
  const detail = `loop ${middle(loops)} ms, whole ${middle(ours.map(({ wholeMs }) => wholeMs))} ms, ${middle(outside)} % of it outside all sessions`;
  const shares = ours.map(({ loopMs, runMs }) => loopMs / runMs);
  const own = { ...figure(`${pictures}: loop / session.run`, shares, { atMost: 1.05 }), detail };
  if (!theirs) return [own];
  const their = theirs.map(({ loopMs }) => loopMs);
  const against = figure(`${pictures}: ours / Python`, ratios(loops, their), { atMost: 1 });
  return [own, { ...against, detail: `Python's loop ${middle(their)} ms` }];
}

async function draw(pipeline: Pipeline, batch: number): Promise<WholeTime> {
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

/** `bench/python.py` runs one loop for each line that it receives. @throws Error if it ends early */
async function startPython(python: string, { model, threads }: BenchOptions, size: number) {
  const child = spawn(python, ['bench/python.py', model, String(threads)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async (): Promise<string> => {
    const line = await lines.next();
    if (line.done) throw new Error('The Python side ended early; what it wrote above says why.');
    return line.value;
  };
  const failed = new Promise<never>((_, reject) => child.once('error', reject));
  await Promise.race([read(), failed]);
  return {
    run: async (batch: number): Promise<LoopTime> => {
      child.stdin.write(`${JSON.stringify({ prompt, batch, size, steps, guidanceScale })}\n`);
      return JSON.parse(await read()) as LoopTime;
    },
    stop: () => child.stdin.end(),
  };
}
