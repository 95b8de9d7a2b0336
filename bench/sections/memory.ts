import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readModelFolder } from '@app/diffusion';
import { firstPicture } from '../bench-engine';
import { type BenchOptions, figure, interleave, ratios, type Section } from '../section';

export const memory: Section = {
  name: 'memory',
  title: 'Memory',
  about:
    'The largest resident memory of a process that draws one picture of one guided step, and then two in one request, divided by what the weights take in float32. ' +
    'With `--python`, also divided by that of diffusers with torch, which draws as many.',
  rounds: 3,
  async measure({ rounds, python, ...options }) {
    const size = await weightBytes(options);
    const ours = async (pictures: number) => (await firstPicture(options, { pictures })).bytes;
    const theirs = async (pictures: number) => (python ? pythonBytes(python, options, pictures) : NaN);
    const sides = { one: () => ours(0), two: () => ours(2), theirOne: () => theirs(1), theirTwo: () => theirs(2) };
    const peaks = await interleave(sides, rounds);
    const figuresOf = (name: string, own: number[], their: number[]) => [
      figure(
        `${name}: memory / weights`,
        own.map((bytes) => bytes / size),
      ),
      ...(python ? [figure(`${name}: ours / Python`, ratios(own, their))] : []),
    ];
    return [
      ...figuresOf('one picture', peaks.one, peaks.theirOne),
      ...figuresOf('one picture, then two', peaks.two, peaks.theirTwo),
    ];
  },
};

async function weightBytes({ model }: BenchOptions): Promise<number> {
  const { tensors } = await readModelFolder(model);
  const shapes = [...tensors.values()].flatMap((part) => [...part.values()].map(({ shape }) => shape));
  return 4 * shapes.reduce((sum, shape) => sum + shape.reduce((count, length) => count * length, 1), 0);
}

async function pythonBytes(python: string, { model, threads }: BenchOptions, pictures: number): Promise<number> {
  const args = ['bench/python.py', 'memory', model, String(threads), String(pictures)];
  return Number((await promisify(execFile)(python, args)).stdout);
}
