import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { hasCuda } from '../support/has-cuda';

const run = promisify(execFile);

/** What the dry run prints of some sections. */
async function pageOf(...options: string[]): Promise<string> {
  const args = [resolve('dist/bench/gpu/main.js'), '--dry', ...options];
  const { stdout } = await run(process.execPath, args, { maxBuffer: 1 << 24 });
  return stdout;
}

describe('The dry run of the GPU’s bench', () => {
  it('runs sections of each kind to their ends', async () => {
    const page = await pageOf('--only', 'environment,rows-klein-1024,picture-klein,training-klein');
    expect(page).not.toMatch(/Ended after|Left out|left out|failed/);
    expect(page).toContain('A session on cpu opens.');
    expect(page).toMatch(/\| a row of 8 \/ of 1 \| \d/);
    expect(page).toMatch(/The third: [\d.]+ ms: text [\d.]+ ms, denoising/);
    expect(page).toMatch(/Batches of 1: [\d.]+ ms a step/);
  });

  (hasCuda() ? it.skip : it)('names what ends a section badly, and goes on with the next', async () => {
    const page = await pageOf('--device', 'cuda:0', '--only', 'rows-klein-1024,training-klein');
    expect(page.match(/Ended after \d+ s: The device cuda:0 cannot be used/g)).toHaveLength(2);
  });

  it('leaves out what its time does not suffice for, and says so', async () => {
    expect(await pageOf('--minutes', '0', '--only', 'environment')).toContain('Left out: no time was left.');
  });
});
