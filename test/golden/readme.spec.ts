import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';

const root = join(__dirname, '../..');

/** The script of the library's README, with two steps instead of twenty. */
const readScript = () => shortScript(/^/, 'numInferenceSteps: 20', 'numInferenceSteps: 2');

/** The first script after a heading, with something in it replaced. */
async function shortScript(heading: RegExp, what: string, by: string): Promise<string> {
  const readme = await readFile(join(root, 'libs/diffusion/README.md'), 'utf8');
  const [, script] = /```js\n(.*?)```/s.exec(readme.slice(heading.exec(readme)!.index))!;
  const short = script.replace(what, by);
  expect(short).not.toBe(script);
  return short;
}

describe("the script of the diffusion library's README", () => {
  let folder: string;
  /** Runs it with no environment but an empty home. */
  const run = (file: string) =>
    promisify(execFile)(process.execPath, [file], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: join(folder, 'home') },
    });

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-readme-'));
    for (const name of ['dist', 'docs', 'models', 'node_modules']) await symlink(join(root, name), join(folder, name));
    await mkdir(join(folder, 'home'));
  });
  afterEach(async () => {
    // ONNX Runtime writes the identifier of its telemetry there.
    expect(await readdir(join(folder, 'home'))).toEqual([]);
    await rm(folder, { recursive: true });
  });

  it('draws its two pictures when it is run as the README says', async () => {
    await writeFile(join(folder, 'circle.mjs'), await readScript());
    const { stderr } = await run('circle.mjs');
    // The model's own scheduler, PNDM, makes one call more than there are steps.
    expect(stderr).toBe('\r1 / 3\r2 / 3\r3 / 3');
    const pictures = (await readdir(folder)).filter((name) => name.endsWith('.png'));
    expect(pictures.sort()).toEqual(['circle-0.png', 'circle-1.png']);
    for (const name of pictures)
      expect(await sharp(join(folder, name)).metadata()).toMatchObject({ width: 512, height: 512, channels: 3 });
  });

  it('trains a LoRA of the pictures in docs/robot', async () => {
    const short = 'seed: 1, steps: 2, priorPrompts: []';
    await writeFile(join(folder, 'train.mjs'), await shortScript(/^## Training$/m, 'seed: 1', short));
    const { stdout } = await run('train.mjs');
    expect(stdout).toMatch(/step: 2/);
    expect(stdout).toMatch(/lossAtStart: 0\.\d+/);
    expect((await readdir(folder)).includes('robot.safetensors')).toBe(true);
  });
});
