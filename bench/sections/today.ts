import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { countOf } from '@app/diffusion';
import { fullSizeKlein, sampleShape, textShape } from '../full-size-klein';
import type { MemoryTask, PicturesTaken, PictureTask, StepTask, Taken } from '../klein-process';
import { type Figure, figure, type Goal, interleave, median, randomFrom, ratios, type Section } from '../section';

/** Blocks of either kind of which float32 has room in memory, and is not widened in each call. */
const depth: [number, number] = [1, 4];

type Sides = Record<'int8' | 'mapped' | 'partInt8' | 'partFloat32', Taken[]> &
  Partial<Record<'torch' | 'openVino', Taken[]>> & { klein: PicturesTaken[]; sd: Taken[] } & Record<
    'memory' | 'largeMemory',
    Omit<Taken, 'ms'>[]
  >;

export const today: Section = {
  name: 'today',
  title: 'FLUX.2 [klein] 4B, beside others',
  about:
    'Random weights at full size, 512 x 512, 512 tokens of text. Each side is a process of its own, in turn; times are those of a processor, without loading and the first call. ' +
    `A step is one call of the transformer; where a side would take 16 GB it has ${depth.join(' + ')} of the 5 + 20 blocks. Errors are root mean squares, relative to float32. A picture is whole, with its text and its decoding.`,
  rounds: 1,
  async measure({ rounds, fullSize, threads, python }) {
    const klein = await fullSizeKlein(`${fullSize!}-klein`);
    const data = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
    const random = randomFrom(1);
    for (const [name, shape] of Object.entries({ sample: sampleShape, states: textShape }))
      writeFileSync(
        join(data, name),
        Float32Array.from({ length: countOf(shape) }, () => 2 * (random() + random() + random() - 1.5)),
      );
    const child = join(__dirname, '..', 'klein-process.js');
    const ours = (task: Omit<StepTask, 'data'> | PictureTask | MemoryTask) => () =>
      told(process.execPath, child, JSON.stringify({ ...('side' in task && { data }), ...task, threads }));
    const theirs =
      (side: string, blocks: number[] = []) =>
      () =>
        told(python!, 'bench/klein.py', side, klein.bfloat16, ...[threads, data, ...blocks].map(String));
    const hasOpenVino = python !== undefined && (await run(python, ['-c', 'import nncf, openvino']).catch(() => false));
    const taken = await interleave<Record<string, () => Promise<unknown>>>(
      {
        int8: ours({ model: klein.int8, side: 'int8' }),
        mapped: ours({ model: klein.bfloat16, side: 'mapped' }),
        ...(python && { torch: theirs('torch-bfloat16') }),
        partInt8: ours({ model: klein.int8, side: 'part-int8', depth }),
        partFloat32: ours({ model: klein.bfloat16, side: 'part-float32', depth }),
        ...(hasOpenVino && { openVino: theirs('openvino-int8', depth) }),
        klein: ours({ model: klein.int8, steps: 4, guidanceScale: 1, isWarm: true }),
        sd: ours({ model: fullSize!, steps: 25, guidanceScale: 7.5, isWarm: false }),
        memory: ours({ model: klein.int8, size: 512 }),
        largeMemory: ours({ model: klein.int8, size: 1024 }),
      },
      rounds,
      { warmUp: false },
    );
    const figures = [
      ...stepsOf(taken as Sides),
      ...errorsOf(data, Boolean(hasOpenVino)),
      ...picturesOf(taken as Sides),
    ];
    rmSync(data, { recursive: true });
    return figures;
  },
};

const run = promisify(execFile);

/** What a process prints last; told at once, because all of them take long. */
async function told(program: string, ...args: string[]): Promise<unknown> {
  const { stdout } = await run(program, args, { maxBuffer: 1 << 26 });
  const taken = stdout.trim().split('\n').at(-1)!;
  process.stderr.write(`${basename(program)} ${args.join(' ')}\n  ${taken}\n`);
  return JSON.parse(taken);
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

function costOf(taken: readonly Taken[]): string {
  const of = (key: keyof Taken): number => median(taken.map((each) => each[key]!));
  const anonymous = taken[0].anonymousBytes === undefined ? '' : `, ${gigabytes(of('anonymousBytes'))} of it anonymous`;
  return `${(of('ms') / 1000).toFixed(1)} s and ${gigabytes(of('peakBytes'))}${anonymous}`;
}

function compared(name: string, above: readonly Taken[], below: readonly Taken[], goal?: Goal): Figure {
  const msOf = (all: readonly Taken[]): number[] => all.map(({ ms }) => ms);
  return { ...figure(name, ratios(msOf(above), msOf(below)), goal), detail: `${costOf(above)} / ${costOf(below)}` };
}

function stepsOf({ int8, mapped, torch, partInt8, partFloat32, openVino }: Sides): Figure[] {
  return [
    compared('a step: int8 / bfloat16, widened in each call', int8, mapped),
    ...(torch ? [compared('a step: int8 / torch in bfloat16', int8, torch, { atMost: 0.65 })] : []),
    compared('a step of a part: int8 / float32', partInt8, partFloat32, { atMost: 0.37 }),
    ...(openVino ? [compared('a step of a part: int8 / OpenVINO in int8', partInt8, openVino, { atMost: 1.05 })] : []),
  ];
}

function errorsOf(data: string, hasOpenVino: boolean): Figure[] {
  const read = (side: string) => new Float32Array(new Uint8Array(readFileSync(join(data, side))).buffer);
  const exact = read('part-float32');
  const sumOf = (valueAt: (i: number) => number): number => exact.reduce((sum, _, i) => sum + valueAt(i) ** 2, 0);
  const errorOf = (values: Float32Array): number =>
    Math.sqrt(sumOf((i) => values[i] - exact[i]) / sumOf((i) => exact[i]));
  const own = errorOf(read('part-int8'));
  if (!hasOpenVino) return [figure('error of a part in int8', [own])];
  const their = errorOf(read('openvino-int8'));
  const detail = `${own.toExponential(1)} / ${their.toExponential(1)}`;
  return [{ ...figure('error of a part: int8 / OpenVINO in int8', [own / their], { atMost: 1 / 3 }), detail }];
}

function picturesOf({ klein, sd, memory, largeMemory }: Sides): Figure[] {
  const firsts = klein.map(({ firstMs }) => firstMs);
  const warm = klein.map(({ ms }) => ms);
  const memoryFigure = (name: string, gb: number, taken: Sides['memory']): Figure => ({
    name: `${name} / ${gb} GB`,
    ratios: taken.map(({ peakBytes }) => peakBytes / (gb * 1e9)),
    goal: { atMost: 1 },
    detail: gigabytes(median(taken.map(({ peakBytes }) => peakBytes))),
  });
  return [
    compared('a picture: 4 steps in int8 / Stable Diffusion 1.5, 25 guided steps', klein, sd, { atMost: 0.5 }),
    {
      ...figure('loading and the first picture / the next one', ratios(firsts, warm), { atMost: 1.6 }),
      detail: `${(median(firsts) / 1000).toFixed(0)} s / ${(median(warm) / 1000).toFixed(0)} s`,
    },
    memoryFigure('peak of memory, the text encoder let go', 9, memory),
    memoryFigure('the same with 1024 x 1024', 11, largeMemory),
  ];
}
