import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unpackFamily } from '../../../test/support/families';
import { runModels } from './models-command';

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

  it('fails to verify where there is no model', async () => {
    const none = `No models are installed in ${join(folder, 'models')}. If they are elsewhere, set MODELS_DIR.\n`;
    expect(await run(['verify'])).toEqual({ code: 1, stdout: none, stderr: '' });
    expect(await run(['verify', '--json'])).toEqual({ code: 1, stdout: '[]\n', stderr: '' });
    expect(await run(['list'])).toEqual({ code: 0, stdout: none, stderr: '' });
  });

  it('tells which folders are passed over because of their names', async () => {
    const models = join(folder, 'models');
    for (const name of ['Upper', 'my model', '.hidden', 'upscalers', 'lost+found'])
      await mkdir(join(models, name), { recursive: true });
    await writeFile(join(models, 'READ ME'), '');
    const stderr = `In ${models} the folders are passed over whose name no model may have: "Upper", "my model". A name is 1 to 64 lower-case letters, digits, ".", "_" or "-", beginning with a letter or a digit. Rename it, or install it with "models add <folder> --as <name>".\n`;
    expect(await run(['list', '--json'])).toEqual({ code: 0, stdout: '[]\n', stderr });
    expect(await run(['verify'])).toMatchObject({ code: 1, stderr });
  });

  it('takes a relative path from where npm was called', async () => {
    const missing = await run(['add', './model', '--as', 'x']);
    expect(missing).toMatchObject({ code: 2, stdout: '' });
    expect(missing.stderr).toContain(`there is no ${join(folder, 'model')}.\n`);
    await unpackFamily('sd21-base', folder);
    const added = await run(['add', 'model', '--as', 'x', '--no-trial']);
    expect(added.stdout).toContain(`x is installed from ${join(folder, 'model')}: `);
    const vae = 'model/vae/diffusion_pytorch_model.fp16.safetensors';
    expect(await run(['add', 'model', '--as', 'y', '--no-trial', '--vae', vae])).toMatchObject({ code: 0 });
  });
});
