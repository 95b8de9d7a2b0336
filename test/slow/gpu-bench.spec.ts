import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { hasCuda } from '../support/has-cuda';
import { hasWebgpu } from '../support/has-webgpu';

const run = promisify(execFile);
const main = resolve('dist/bench/gpu/main.js');
const folder = mkdtempSync(join(tmpdir(), 'gpu-bench-'));

afterAll(() => rmSync(folder, { recursive: true }));

/** What the dry run prints of some sections. */
async function pageOf(...options: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [main, '--dry', ...options], { maxBuffer: 1 << 24 });
  return stdout;
}

/** A program in PyTorch's place, with the answer to each call. */
function stubOf(call: object): string {
  const file = join(folder, `stub-${Object.keys(call)[0]}`);
  const answers = JSON.stringify({ load: {}, call });
  const code = `require('readline').createInterface({ input: process.stdin })
    .on('line', (line) => console.log(JSON.stringify(${answers}[JSON.parse(line).do])));`;
  writeFileSync(file, `#!${process.execPath}\n${code}`, { mode: 0o755 });
  return file;
}

describe('The dry run of the GPU’s bench', () => {
  it('runs sections of each kind to their ends', async () => {
    const kinds = 'environment,goldens,rows-klein-1024,adapter-inputs,picture-klein,profile,training-klein';
    const page = await pageOf('--only', `${kinds}${hasWebgpu() ? ',webgpu' : ''}`);
    expect(page).not.toMatch(/Ended|Left out|left out|failed|missed|finite/);
    expect(page).toContain('A session on cpu opens.');
    expect(page).toMatch(/\| sd15 \(float32\) \| \d/);
    expect(page).toMatch(/\| a row of 8 \/ of 1 \| \d/);
    expect(page).toMatch(/\| klein at 1024, 1 row \| \d/);
    expect(page).toMatch(/The third: [\d.]+ ms: text [\d.]+ ms, denoising/);
    expect(page).toMatch(/\*\*sd15 at 512, 8 rows\*\*: \d+ nodes/);
    expect(page).toMatch(/Batches of 1: [\d.]+ ms a step/);
  });

  it('divides its calls by PyTorch’s', async () => {
    const page = await pageOf('--only', 'rows-klein-1024', '--python', stubOf({ ms: 10 }));
    expect(page).toMatch(/\| 8 rows: a call \/ PyTorch’s \| \d.* \/ 10\.0 ms \|/);
  });

  it('keeps its own figures where PyTorch fails, and says so', async () => {
    const page = await pageOf(
      '--only',
      'rows-klein-1024',
      '--python',
      stubOf({ error: 'OutOfMemoryError: all of it' }),
    );
    expect(page).toMatch(/8 rows: [\d.]+ ms, of which/);
    expect(page).toContain('8 rows, beside PyTorch: left out: PyTorch: OutOfMemoryError: all of it');
    expect(page).not.toContain('Ended');
  });

  (hasCuda() ? it.skip : it)('names what ends a section badly, and goes on with the next', async () => {
    const page = await pageOf('--device', 'cuda:0', '--only', 'rows-klein-1024,training-klein');
    expect(page.match(/Ended after \d+ s\*\*: The device cuda:0 cannot be used/g)).toHaveLength(2);
  });

  (hasCuda() ? it.skip : it)('measures nothing on a device that cannot be used', async () => {
    const failed = pageOf('--device', 'cuda:0', '--only', 'environment,goldens');
    await expect(failed).rejects.toMatchObject({
      stdout: expect.not.stringContaining('Goldens') as string,
      stderr: 'Nothing else was measured, as cuda:0 cannot be used.\n',
    });
  });

  it('leaves out what its time does not suffice for, and says so', async () => {
    expect(await pageOf('--minutes', '0.1', '--only', 'environment')).toContain('Left out: no time was left.');
  });

  it('refuses a time that is none', async () => {
    await expect(pageOf('--minutes', 'ten')).rejects.toThrow('--minutes ten is no time.');
  });

  it('ends its processes and leaves no file when it is stopped', async () => {
    const env = { ...process.env, TMPDIR: mkdtempSync(join(folder, 'stopped-')) };
    const child = spawn(process.execPath, [main, '--dry', '--only', 'environment,goldens,training-klein'], {
      ...{ env, stdio: ['ignore', 'pipe', 'inherit'] },
    });
    // All that have its output end, or it would not close.
    const closed = once(child, 'close');
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await closed).toEqual([1, null]);
    expect(readdirSync(env.TMPDIR)).toEqual([]);
  });
});
