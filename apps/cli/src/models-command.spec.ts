import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runModels } from './models-command';

const tinyModel = join(__dirname, '../../../test/golden/models/tiny/sd15-diffusers');

describe(runModels, () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-cli-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function run(args: readonly string[]) {
    let stdout = '';
    let stderr = '';
    const code = await runModels(args, {
      env: { MODELS_DIR: join(folder, 'models'), INIT_CWD: folder },
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
    });
    return { code, stdout, stderr };
  }

  it('takes a relative path from where npm was called', async () => {
    const missing = await run(['add', './model', '--as', 'x']);
    expect(missing).toMatchObject({ code: 2, stdout: '' });
    expect(missing.stderr).toContain(`there is no folder ${join(folder, 'model')}.\n`);
    await cp(tinyModel, join(folder, 'model'), { recursive: true });
    const added = await run(['add', 'model', '--as', 'x', '--no-trial']);
    expect(added.stdout).toContain(`x is installed from ${join(folder, 'model')}: `);
  });
});
