import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { packed } from '../support/packed-packages';

const run = promisify(execFile);
const root = resolve(__dirname, '..', '..');
const source = join(root, 'packages', 'diffusion');

interface Manifest {
  version: string;
  dependencies: Record<string, string>;
}
const manifestOf = (path: string) => JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as Manifest;
const [, script] = /^```js\n(.*?)^```$/ms.exec(readFileSync(join(source, 'README.md'), 'utf8')) ?? [];

describe('The tarball of @darkroom/diffusion, unpacked in an empty folder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-diffusion-'));
  let files: string[];

  beforeAll(async () => {
    const tarball = await packed(source, folder);
    files = tarball.files;
    const place = join(folder, 'node_modules', '@darkroom', 'diffusion');
    mkdirSync(place, { recursive: true });
    await run('tar', ['-xzf', join(folder, tarball.filename), '-C', place, '--strip-components=1']);
    // Linked, not copied: ONNX Runtime has 100 MB.
    for (const name of [...Object.keys(manifestOf(source).dependencies), '@types/node']) {
      mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
    }
  });

  afterAll(() => void rmSync(folder, { recursive: true, force: true }));

  it('holds what was compiled, the tokenizers and the licence, and no test', () => {
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'dist/src/index.js', 'dist/src/index.d.ts']));
    expect(files.filter((path) => path.startsWith('dist/assets/')).length).toBeGreaterThan(3);
    expect(files.filter((path) => /\.(?:spec|map)(?:\.|$)/.test(path))).toEqual([]);
  });

  it('has the version of the service, and depends on what the service was tested with', () => {
    const service = manifestOf(root);
    const { version, dependencies } = manifestOf(source);
    expect(version).toBe(service.version);
    expect(service.dependencies).toMatchObject(dependencies);
  });

  it('draws by the script of its README, which compiles with its types', async () => {
    writeFileSync(join(folder, 'circle.mts'), script);
    const options = ['--strict', '--noEmit', '--target', 'es2023', '--module', 'node20', '--types', 'node'];
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const compiled = run(process.execPath, [tsc, ...options, 'circle.mts'], { cwd: folder });
    expect((await compiled.catch(({ stdout }: { stdout: string }) => ({ stdout }))).stdout).toBe('');

    writeFileSync(join(folder, 'circle.mjs'), script);
    await run(process.execPath, ['circle.mjs', join(root, 'models', 'shapes')], { cwd: folder });
    const picture = readFileSync(join(folder, 'circle.ppm'));
    const pixels = picture.subarray(picture.indexOf('255\n') + 4);
    const colourAt = (x: number, y: number) => [...pixels.subarray((y * 512 + x) * 3, (y * 512 + x) * 3 + 3)];
    expect(picture.subarray(0, 15).toString()).toBe('P6 512 512 255\n');
    const [cornerRed, , cornerBlue] = colourAt(8, 8);
    expect(cornerBlue).toBeGreaterThan(cornerRed + 50);
    const redPixels = Array.from({ length: 512 * 512 }, (_, i) => pixels[i * 3] > pixels[i * 3 + 2] + 50);
    expect(redPixels.filter(Boolean).length).toBeGreaterThan(2_000);
  });
});
