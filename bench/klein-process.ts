import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeTexts, type LoadOptions, Pipeline, readModelFolder } from '@app/diffusion';
import { noAdapters } from '../libs/diffusion/src/adapters/row-adapters';
import { TransformerFiles } from '../libs/diffusion/src/denoisers/transformer';
import { float32 } from '../libs/diffusion/src/sessions/tensor';
import { sampleShape, textShape } from './full-size-klein';
import { processorMs } from './section';

interface Threads {
  threads: number;
}

/** One call of the transformer. */
export interface StepTask {
  /** Its folder. */
  model: string;
  /** Folder with the inputs, which gets the output. */
  data: string;
  /** Name of the output. */
  side: string;
  /** Blocks of either kind, where not all are wanted. */
  depth?: [number, number];
}

/** A whole picture of 512 x 512. */
export interface PictureTask {
  /** Its folder. */
  model: string;
  steps: number;
  guidanceScale: number;
  /** Whether another is drawn after it, whose time is told. */
  isWarm: boolean;
}

/** The memory that a picture takes whose texts are encoded first, by a text encoder that is then let go. */
export interface MemoryTask {
  /** Its folder. */
  model: string;
  /** Edge in pixels. */
  size: number;
}

/** What a process took, in processor milliseconds and bytes. */
export interface Taken {
  ms: number;
  peakBytes: number;
  /** All that is no file, where the system tells. */
  anonymousBytes?: number;
}

/** What a picture took of a process that has drawn one before. */
export interface PicturesTaken extends Taken {
  /** Loading and the first picture. */
  firstMs: number;
}

async function step({ model, threads, data, side, depth }: StepTask & Threads): Promise<Taken> {
  const { denoiser } = await readModelFolder(model);
  const { tensors, file, use, guidance } = denoiser as TransformerFiles;
  const isKept = (name: string): boolean => {
    const [, single, block] = /^(single_)?transformer_blocks\.(\d+)\./.exec(name) ?? [];
    return !depth || block === undefined || Number(block) < depth[single ? 1 : 0];
  };
  const kept = new Map([...tensors].filter(([name]) => isKept(name)));
  const files = new TransformerFiles(kept, file, use, guidance);
  const transformer = await files.open({ device: 'cpu', intraOpNumThreads: threads });
  const read = (name: string) => new Float32Array(new Uint8Array(readFileSync(join(data, name))).buffer);
  const conditioning = { encoder_hidden_states: float32(read('states'), textShape) };
  const row = { sample: read('sample'), timestep: 500, conditioning, guidanceScale: 1, adapters: noAdapters };
  const predict = async () => (await transformer.predict([row], sampleShape))[0];
  await predict();
  const ms = await processorMs(async () => writeFileSync(join(data, side), await predict()));
  return { ms, ...memory() };
}

const request = { prompt: 'a lighthouse in a storm', negativePrompt: null, width: 512, height: 512, seeds: [1] };

async function pictures({ model, threads, steps, guidanceScale, isWarm }: PictureTask & Threads) {
  let pipeline: Pipeline | undefined;
  const loadMs = await processorMs(async () => {
    pipeline = await Pipeline.load(model, { device: 'cpu', intraOpNumThreads: threads });
  });
  const draw = (rest = {}) =>
    processorMs(() => pipeline!.generate({ ...request, numInferenceSteps: steps, guidanceScale, ...rest }));
  const ms = await draw();
  // Another text, or it would not be encoded again.
  return isWarm
    ? { ms: await draw({ prompt: 'a red circle on blue' }), firstMs: loadMs + ms, ...memory() }
    : { ms, ...memory() };
}

async function memoryOf({ model, threads, size }: MemoryTask & Threads): Promise<Omit<Taken, 'ms'>> {
  const options: LoadOptions = { device: 'cpu', intraOpNumThreads: threads };
  const folder = await readModelFolder(model);
  const conditioner = await folder.conditioner.open(options);
  const asked = { ...request, width: size, height: size, numInferenceSteps: 1, guidanceScale: 1 };
  const texts = await encodeTexts(folder, conditioner, asked);
  await conditioner.release();
  const pipeline = await Pipeline.loadWithoutTexts(folder, texts, options);
  const trajectories = await pipeline.prepare(asked, texts);
  await pipeline.step(trajectories);
  await pipeline.decode(trajectories[0]);
  return memory();
}

function memory(): Omit<Taken, 'ms'> {
  const peakBytes = 1024 * process.resourceUsage().maxRSS;
  if (process.platform !== 'linux') return { peakBytes };
  const [, anonymous] = /RssAnon:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return { peakBytes, anonymousBytes: 1024 * Number(anonymous) };
}

async function main(): Promise<void> {
  const task = JSON.parse(process.argv[2]) as (StepTask | PictureTask | MemoryTask) & Threads;
  const taken = await ('data' in task ? step(task) : 'size' in task ? memoryOf(task) : pictures(task));
  process.stdout.write(JSON.stringify(taken));
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
