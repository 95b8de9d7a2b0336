import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { readModelFolder } from '@app/diffusion';
import { dist } from '../child';
import { interleave } from '../rounds';
import type { BenchOptions, Section } from '../section';
import { figure, ratios } from '../section';

const numbersOfPictures = [1, 2];

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
    const sides = Object.fromEntries(
      numbersOfPictures.flatMap((pictures) => [
        [`ours ${pictures}`, () => ours(options, folder, pictures)],
        ...(python ? [[`python ${pictures}`, () => pythons(python, options, pictures)]] : []),
      ]) as [string, () => Promise<number>][],
    );
    const peaks = await interleave(sides, rounds);
    rmSync(folder, { recursive: true, force: true });
    const figures = numbersOfPictures.flatMap((pictures) => {
      const name = pictures === 1 ? 'one picture' : 'one picture, then two';
      const own = peaks[`ours ${pictures}`];
      const theirs = peaks[`python ${pictures}`];
      return [
        figure(
          `${name}: memory / size of the graphs`,
          own.map((bytes) => bytes / size),
        ),
        ...(theirs ? [figure(`${name}: ours / Python`, ratios(own, theirs))] : []),
      ];
    });
    return { figures };
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

/** The first one, in the round that warms up, fills the cache. */
async function ours({ model, threads }: BenchOptions, cache: string, pictures: number): Promise<number> {
  const more = pictures > 1 ? ['--more', String(pictures)] : [];
  const child = fork(join(dist, 'bench', 'first-picture.js'), [
    ...['--model', model, '--threads', String(threads), '--cache', cache],
    ...more,
  ]);
  let bytes: number | undefined;
  child.once('message', (message) => (bytes = Number(message)));
  const [code] = (await once(child, 'exit')) as [number | null];
  if (bytes === undefined) throw new Error(`The process ended with ${code} before its pictures were drawn.`);
  return bytes;
}

async function pythons(python: string, { model, threads }: BenchOptions, pictures: number): Promise<number> {
  const script = join(process.cwd(), 'bench/python/memory.py');
  const { stdout } = await promisify(execFile)(python, [script, model, String(threads), String(pictures)]);
  return Number(stdout);
}
