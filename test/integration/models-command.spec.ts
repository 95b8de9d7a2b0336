import { mkdtempSync } from 'node:fs';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cures } from '@app/diffusion/files';
import { runModels } from '../../apps/cli/src/models-command';
import { unpackFamily } from '../support/families';
import { HubServer } from '../support/hub-server';

const unpacked = mkdtempSync(join(tmpdir(), 'darkroom-models-'));
const diffusers = join(unpacked, 'model');
const weights = 'unet/diffusion_pytorch_model.safetensors';

describe('models command', () => {
  let folder: string;
  let hub: HubServer;

  beforeAll(() => unpackFamily('sd21', unpacked));
  afterAll(() => rm(unpacked, { recursive: true }));

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-cli-'));
    hub = await HubServer.start();
    hub.publishFolder(diffusers);
  });

  afterEach(async () => {
    await hub.close();
    await rm(folder, { recursive: true });
  });

  async function run(args: string, { env = {}, signal }: { env?: object; signal?: AbortSignal } = {}) {
    let stdout = '';
    let stderr = '';
    const code = await runModels(args.split(' ').filter(Boolean), {
      env: { MODELS_DIR: join(folder, 'models'), HF_ENDPOINT: hub.url, HF_TOKEN: 'hf_secret', ...env },
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
      ...(signal && { signal }),
    });
    return { code, stdout, stderr };
  }

  it('adds, lists, verifies and removes a model', async () => {
    expect(await run('list')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('No models are installed') as string,
    });

    const added = await run(`add ${hub.repository}@main --as sd1.5`);
    expect(added).toMatchObject({ code: 0 });
    expect(added.stdout).toMatch(
      /^sd1\.5 is installed from someone\/tiny@c0ffee0{34}: \d{3} kB in float32, hash [0-9a-f]{12}\.\n$/,
    );
    expect(added.stderr).toMatch(/100 % {2}(\d+ kB) of \1/);
    expect(hub.requests[0].headers.authorization).toBe('Bearer hf_secret');

    const hash = /hash ([0-9a-f]{12})/.exec(added.stdout)![1];
    expect((await run('list')).stdout).toMatch(
      new RegExp(
        `^NAME +FAMILY +EDGE +PRECISION +HASH .*\nsd1\\.5 +sd2 +768 px +float32 +${hash} +\\d+ kB +someone/tiny@`,
      ),
    );
    const [listed] = JSON.parse((await run('list --json')).stdout) as { name: string; hash: string }[];
    expect(listed).toMatchObject({ name: 'sd1.5', hash: expect.stringMatching(`^${hash}`) as string });

    expect(await run('verify')).toMatchObject({ code: 0, stdout: `sd1.5: as installed, hash ${hash}.\n` });
    const config = join(folder, 'models/sd1.5/unet/config.json');
    await writeFile(config, (await readFile(config, 'utf8')).concat('\n'));
    const changed = `sd1.5: unet/config.json is changed. ${cures.installAgain}\n`;
    expect(await run('verify sd1.5')).toMatchObject({ code: 1, stdout: changed });

    expect(await run('remove sd1.5')).toMatchObject({ code: 0, stdout: 'sd1.5 is removed.\n' });
    expect(await run('remove sd1.5')).toMatchObject({
      code: 1,
      stderr: 'There is no model sd1.5 here; "models list" shows what there is.\n',
    });
  });

  it('installs a model in the precision that is asked for', async () => {
    expect(await run(`add ${diffusers} --as small --precision int8`)).toMatchObject({ code: 0 });
    expect((await run('list')).stdout).toMatch(/^small +sd2 +768 px +int8 /m);
    expect(JSON.parse((await run('list --json')).stdout)).toMatchObject([{ precision: 'int8' }]);
    expect(await run(`add ${diffusers} --as smaller --precision int4`)).toMatchObject({ code: 2 });
  });

  it('writes the defaults of a distilled model, and refuses those that no request could have', async () => {
    expect(await run(`add ${diffusers} --as fast --steps 4 --cfg 1 --scheduler lcm`)).toMatchObject({ code: 0 });
    const defaults = JSON.parse(await readFile(join(folder, 'models/fast/darkroom.json'), 'utf8')) as object;
    expect(defaults).toEqual({ steps: 4, cfg: 1, scheduler: 'lcm' });
    expect((await run('verify fast')).stdout).toMatch(/^fast: as installed/);
    // Facts that its weights cannot tell are written beside them too.
    await run(`add ${diffusers} --as told --clip-skip 2 --size 640 --prediction epsilon`);
    const told = JSON.parse(await readFile(join(folder, 'models/told/darkroom.json'), 'utf8')) as object;
    expect(told).toEqual({ clip_skip: 2, size: 640, prediction_type: 'epsilon' });
    await run('remove told');
    // A source's own are kept where none are given.
    await run(`add ${join(folder, 'models/fast')} --as faster --steps 2`);
    const [, faster] = JSON.parse((await run('list --json')).stdout) as { defaults: object }[];
    expect(faster.defaults).toEqual({ steps: 2, cfg: 1, scheduler: 'lcm' });
    await writeFile(join(folder, 'models/fast/darkroom.json'), '{"steps": 0}');
    expect((await run('verify fast')).stdout).toMatch(/^fast: darkroom\.json has steps that /);
    for (const [option, value, reason] of [
      ['--steps <n>', '400', 'What was given has steps that are no integer from 1 to 50.'],
      ['--cfg <n>', 'none', 'What was given has a cfg that is no number from 1 to 20.'],
      ['--scheduler <name>', 'karras', 'Allowed choices are ddim, ddpm, '],
      ['--clip-skip <n>', '0', 'What was given has a clip_skip that is no integer from 1 to 12.'],
      ['--size <pixels>', '500', 'What was given has a size that is no multiple of 64 from 256 to 2048.'],
      ['--prediction <type>', 'v', 'Allowed choices are epsilon, v_prediction, sample.'],
    ] as const)
      expect(await run(`add ${diffusers} --as slow ${option.split(' ')[0]} ${value}`)).toEqual({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining(
          `error: option '${option}' argument '${value}' is invalid. ${reason}`,
        ) as string,
      });
  });

  it('asks before it removes the bundled model, and does nothing where nobody can answer', async () => {
    await cp(diffusers, join(folder, 'models/shapes'), { recursive: true });
    expect(await run('remove shapes')).toMatchObject({
      code: 1,
      stdout: 'shapes stays. With --force it is removed without a question.\n',
    });
    const [listed] = JSON.parse((await run('list --json')).stdout) as { name: string }[];
    expect(listed.name).toBe('shapes');
    const removed = await run('remove shapes --force --json');
    expect([removed.code, JSON.parse(removed.stdout)]).toEqual([0, { removed: ['shapes'] }]);
    expect(JSON.parse((await run('list --json')).stdout)).toEqual([]);
  });

  it('prints what it added and verified as JSON', async () => {
    const added = await run(`add ${hub.repository}@main --as sd1.5 --json`);
    expect(JSON.parse(added.stdout)).toMatchObject({ name: 'sd1.5', hash: expect.any(String) as string });
    const [listed] = JSON.parse((await run('list --json')).stdout) as object[];
    expect(listed).toMatchObject({
      added_at: expect.any(String) as string,
      family: 'sd2',
      kind: 'text-to-image',
      problem: null,
    });
    expect([JSON.stringify(listed), added.stdout].join()).not.toMatch(/"[a-z]+[A-Z][A-Za-z]*":/);
    const verified = await run('verify --json');
    expect(JSON.parse(verified.stdout)).toMatchObject([{ name: 'sd1.5', ok: true }]);
  });

  it('verifies a hand-made folder as far as it can, and names a broken model', async () => {
    await cp(diffusers, join(folder, 'models/by-hand'), { recursive: true });
    expect((await run('verify by-hand')).stdout).toMatch(/^by-hand: readable; it was not installed by "add"/);
    await writeFile(join(folder, 'models/by-hand/darkroom.json'), '[]');
    await writeFile(join(folder, 'models/by-hand/preview.json'), '[]');
    const { stdout } = await run('verify by-hand');
    expect(stdout).toMatch(/^by-hand:\n {2}darkroom\.json is not a JSON object\. .*\n {2}preview\.json is .*\n$/);
    await rm(join(folder, 'models/by-hand', weights));
    const missing = `unet/ holds no weights. ${cures.installAgain}`;
    expect(await run('verify')).toMatchObject({ code: 1, stdout: `by-hand: ${missing}\n` });
    expect((await run('list')).stdout).toContain(`cannot be used: ${missing}`);
  });

  const scheduler = 'scheduler/scheduler_config.json';
  const edit = (file: string, change: object) => async (model: string) => {
    const path = join(model, file);
    await writeFile(path, JSON.stringify({ ...(JSON.parse(await readFile(path, 'utf8')) as object), ...change }));
  };

  it('lists what keeps a model from drawing, and what it cannot draw', async () => {
    const [foo, wide] = ['foo', 'wide'].map((name) => join(folder, 'models', name));
    for (const model of [foo, wide]) await cp(diffusers, model, { recursive: true });
    await edit(scheduler, { _class_name: 'FooScheduler' })(foo);
    await edit('vae/config.json', { scaling_factor: 0 })(wide);
    const ofFoo = 'Its own scheduler cannot draw: The scheduler class "FooScheduler" is not supported. ';
    const ofWide = `vae/config.json has a scaling_factor that is no number, infinite or 0. ${cures.correct}`;
    const listed = JSON.parse((await run('list --json')).stdout) as { problem: string }[];
    expect(listed.map(({ problem }) => problem)).toEqual([expect.stringContaining(ofFoo), ofWide]);
    const { stdout } = await run('list');
    for (const shown of [`found in place. ${ofFoo}`, `cannot be used: ${ofWide}`]) expect(stdout).toContain(shown);
  });

  it.each<[what: string, change: (model: string) => Promise<unknown>, sentence: string]>([
    [
      'weights of another model',
      async (model) => {
        await unpackFamily('lcm', join(folder, 'other'));
        for (const name of ['unet', 'vae'])
          await cp(join(folder, 'other/model', name), join(model, name), { recursive: true });
      },
      `${weights} takes embeddings 16 wide, and the text encoders give 24. ${cures.oneModel}`,
    ],
    [
      'a beta_start that is no number',
      edit(scheduler, { beta_start: 'low' }),
      'scheduler/scheduler_config.json cannot be used: beta_start must be a number from 1e-7 to 0.999, but is "low".',
    ],
  ])('refuses a model that cannot be drawn with, and leaves nothing behind: %s', async (_, change, sentence) => {
    const model = join(folder, 'model');
    await cp(diffusers, model, { recursive: true });
    await change(model);
    const { code, stdout, stderr } = await run(`add ${model} --as x`);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.replaceAll(/^ *\d+ %.*\n/gm, '')).toMatch(/^[^\n]+\.\n$/);
    expect(stderr).toContain(`${model} is no model to draw with: ${sentence}`);
    expect(await readdir(join(folder, 'models'))).toEqual([]);
    // A machine with too little memory to try it may leave that out; what its files say is checked still.
    const isTold = sentence.startsWith(scheduler);
    expect(await run(`add ${model} --as x --no-trial`)).toMatchObject({ code: isTold ? 1 : 0 });
  });

  it.each<[what: string, change: (model: string) => Promise<unknown>, sentence: string]>([
    [
      'a scheduler that is not supported',
      edit(scheduler, { _class_name: 'FooScheduler' }),
      'Its own scheduler cannot draw: The scheduler class "FooScheduler" is not supported. Requests and Prompts that name none are refused; to draw them, set "scheduler" in its darkroom.json to any scheduler, such as ddim.',
    ],
    [
      'values that its own scheduler and some others do not take',
      edit(scheduler, { _class_name: 'EulerDiscreteScheduler', use_karras_sigmas: 'yes' }),
      'Its own scheduler cannot draw: use_karras_sigmas must be true or false, but is "yes". Requests and Prompts that name none are refused; to draw them, set "scheduler" in its darkroom.json to ddim, ddpm, pndm, euler_a, dpmpp_2m, dpmpp_2m_karras, dpmpp_2m_sde_karras, lcm or tcd.',
    ],
    [
      'another number of channels',
      async (model) => {
        await rm(model, { recursive: true });
        await unpackFamily('inpainting', join(folder, 'other'));
        await cp(join(folder, 'other/model'), model, { recursive: true });
      },
      'It draws from a picture (inpainting), so a request needs "image" and "mask".',
    ],
  ])('says what is to be known of a model that it installs: %s', async (_, change, sentence) => {
    const model = join(folder, 'model');
    await cp(diffusers, model, { recursive: true });
    await change(model);
    const { code, stdout } = await run(`add ${model} --as x`);
    const linked = 'Its weights are the same files, linked: they take no space a second time.';
    expect([code, stdout.split('\n').slice(1)]).toEqual([0, [linked, sentence, '']]);
  });

  it.each([
    ['', 2, 'Usage: models'],
    ['paint', 2, "unknown command 'paint'"],
    ['add someone/tiny', 2, "required option '--as <name>' not specified"],
    ['add someone/tiny --as ../x', 2, '"../x" is no model name'],
    ['add ./nowhere --as x', 2, '"./nowhere" is neither a file, a folder nor a repository'],
    ['verify x', 1, 'There is no model x here'],
  ])('answers "%s" with exit code %i', async (args, code, message) => {
    const result = await run(args);
    expect(result.code).toBe(code);
    expect(result.stderr).toContain(message);
    expect(result.stdout).toBe('');
  });

  it('explains an error of the hub in one sentence', async () => {
    hub.fail('listing', { status: 401 });
    expect(await run(`add ${hub.repository} --as x`, { env: { HF_TOKEN: '' } })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'someone/tiny@main does not exist or needs a token in HF_TOKEN.\n',
    });
  });

  it('names every bad variable', async () => {
    const result = await run('list', { env: { HF_ENDPOINT: 'nonsense', PORT: 'x' } });
    expect(result).toMatchObject({ code: 78, stdout: '' });
    expect(result.stderr).toMatch(/PORT[^]*HF_ENDPOINT|HF_ENDPOINT[^]*PORT/);
  });

  it('exits with 130 when it is interrupted', async () => {
    const stop = new AbortController();
    hub.fail(weights, { stallAfter: 1000 });
    hub.once('stalled', () => stop.abort());
    expect(await run(`add ${hub.repository} --as x`, { signal: stop.signal })).toMatchObject({ code: 130 });
  });

  it('lists repositories, licences and sizes in the help of add', async () => {
    const { code, stdout } = await run('add --help');
    expect(code).toBe(0);
    expect(stdout).toMatch(/stable-diffusion-xl-base-1\.0 +--as sdxl +6\.9 GB +CreativeML Open RAIL\+\+-M/);
  });
});
