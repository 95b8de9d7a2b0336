import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { readModelFolder } from '@app/diffusion';
import { firstPicture } from '../bench-engine';
import { type BenchOptions, figure, interleave, ratios, type Section } from '../section';

export const memory: Section = {
  name: 'memory',
  title: 'Memory',
  about:
    'The largest resident memory of a process that draws one picture of one guided step, and then two in one request, divided by the size of the model’s graphs; the optimised graphs ' +
    'are in the cache. With `--python`, also divided by that of a Python process that holds the same graphs in onnxruntime and draws as many.',
  rounds: 3,
  async measure({ rounds, python, ...options }) {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
    const size = await graphBytes(options);
    // The first process, in the round that warms up, fills the cache.
    const ours = async (more: number) => (await firstPicture(options, folder, more)).bytes;
    const theirs = async (pictures: number) => (python ? pythonBytes(python, options, pictures) : NaN);
    const sides = { one: () => ours(0), two: () => ours(2), theirOne: () => theirs(1), theirTwo: () => theirs(2) };
    const peaks = await interleave(sides, rounds);
    rmSync(folder, { recursive: true, force: true });
    const figuresOf = (name: string, own: number[], their: number[]) => [
      figure(
        `${name}: memory / size of the graphs`,
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

async function graphBytes({ model }: BenchOptions): Promise<number> {
  const { textEncoder, unet, vaeDecoder } = await readModelFolder(model, 'cpu');
  const files = [textEncoder, unet, vaeDecoder].flatMap(({ path, externalFiles }) => [
    path,
    ...externalFiles.map((name) => join(dirname(path), name)),
  ]);
  return files.reduce((sum, file) => sum + statSync(file).size, 0);
}

async function pythonBytes(python: string, { model, threads }: BenchOptions, pictures: number): Promise<number> {
  const args = ['bench/python.py', 'memory', model, String(threads), String(pictures)];
  return Number((await promisify(execFile)(python, args)).stdout);
}
