import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { transform } from '@swc/core';
import sharp from 'sharp';

const root = join(__dirname, '../..');

/** The script of the library's README, with two steps instead of twenty. */
async function readScript(): Promise<string> {
  const readme = await readFile(join(root, 'libs/diffusion/README.md'), 'utf8');
  const [, script] = /```ts\n(.*?)```/s.exec(readme)!;
  const short = script.replace('numInferenceSteps: 20', 'numInferenceSteps: 2');
  expect(short).not.toBe(script);
  return short;
}

/** Runs a TypeScript module with its own `require` and top-level await, as `node` would from this folder. */
async function run(script: string): Promise<void> {
  const { code } = await transform(script, {
    jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
    module: { type: 'commonjs' },
  });
  const AsyncFunction = (async () => undefined).constructor as new (
    ...code: string[]
  ) => (...values: unknown[]) => Promise<void>;
  await new AsyncFunction('require', 'exports', code)(require, {});
}

describe("the script of the diffusion library's README", () => {
  const from = process.cwd();
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-readme-'));
    await symlink(join(root, 'models'), join(folder, 'models'));
    process.chdir(folder);
  });
  afterEach(async () => {
    process.chdir(from);
    await rm(folder, { recursive: true });
  });

  it('draws its two pictures', async () => {
    const steps: string[] = [];
    const write = jest.spyOn(process.stderr, 'write').mockImplementation((text) => steps.push(String(text)) > 0);
    try {
      await run(await readScript());
    } finally {
      write.mockRestore();
    }
    // The model's own scheduler, PNDM, makes one call more than there are steps.
    expect(steps).toEqual(['\r1 / 3', '\r2 / 3', '\r3 / 3']);
    expect((await readdir(folder)).sort()).toEqual(['circle-0.png', 'circle-1.png', 'models']);
    for (const name of ['circle-0.png', 'circle-1.png'])
      expect(await sharp(join(folder, name)).metadata()).toMatchObject({ width: 512, height: 512, channels: 3 });
  });
});
