import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { transformSync } from '@swc/core';
import sharp from 'sharp';
import { startTestApi } from '../support/api';
import { ofSuite } from '../support/of-suite';

const root = resolve(__dirname, '..', '..');
const document = join(root, 'openapi.json');
const run = promisify(execFile);
const node = (...args: string[]) => run(process.execPath, args, { cwd: root });
const cli = (name: string, file: string) => join(root, 'node_modules', name, file);

/**
 * Programs of the generated clients. Each draws a picture, leaving out every field that has a default, tells the two
 * answers of `POST /v1/finetunes` apart, and knows the code of an error; the compiler holds it to its types.
 */
const inTypeScript = `
  import createClient from 'openapi-fetch';
  import type { components, paths } from './generated';
  const client = createClient<paths>({ baseUrl: process.env.URL, headers: { Authorization: 'Bearer ' + process.env.KEY } });
  type Answer = components['schemas']['RegisteredFinetune'] | components['schemas']['Generation'];
  const nameOf = (answer?: Answer) => (answer && 'token' in answer ? answer.token : answer?.prompt);
  void (async () => {
    const header = { Prefer: 'wait=30' };
    const { data } = await client.POST('/v1/sd/text-to-image', { params: { header }, body: { prompt: 'a star' } });
    const finetune = await client.POST('/v1/finetunes', { body: { name: 'robot' } });
    const generation = await client.POST('/v1/finetunes', { body: { prompt: 'a moon' } });
    const { error } = await client.POST('/v1/sd/text-to-image', { body: { prompt: '' } });
    const names = [nameOf(finetune.data), nameOf(generation.data)];
    console.log(JSON.stringify({ image: data?.images[0], names, isMissing: error?.code === 'PromptMissing' }));
    // @ts-expect-error -- there is no such code
    error?.code === 'PromptMislaid';
  })();`;

const inPython = `
import json, os
from generated import AuthenticatedClient
from generated.api.fine_tunes import create_finetune_or_generation
from generated.api.text_to_image import create_generation
from generated.models import CreateFinetune, CreateGeneration, ErrorCode, RegisteredFinetune

client = AuthenticatedClient(base_url=os.environ["URL"], token=os.environ["KEY"])
drawn = create_generation.sync(client=client, body=CreateGeneration(prompt="a star"), prefer="wait=30")
answers = [
    create_finetune_or_generation.sync(client=client, body=body)
    for body in (CreateFinetune(name="robot"), CreateGeneration(prompt="a moon"))
]
names = [answer.token if isinstance(answer, RegisteredFinetune) else answer.prompt for answer in answers]
refused = create_generation.sync(client=client, body=CreateGeneration(prompt=""))
print(json.dumps({"image": drawn.images[0], "names": names, "isMissing": refused.code == ErrorCode.PROMPTMISSING}))
`;

const python = spawnSync(
  process.execPath,
  [join(root, 'scripts', 'python-environment.mjs'), 'openapi-python-client==0.29.1', 'python-dateutil==2.9.0.post0'],
  { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
);
const itWherePossible = python.status === 0 ? it : it.skip;

describe('Generated clients', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey({ sandbox: true }));
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-generated-'));
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    await node(cli('openapi-typescript', 'bin/cli.js'), document, '-o', join(folder, 'generated.ts'));
    writeFileSync(join(folder, 'program.ts'), inTypeScript);
  });

  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
  });

  const runsWell = async (command: string, file: string, env: NodeJS.ProcessEnv = {}) => {
    const { stdout } = await run(command, [file], {
      cwd: folder,
      env: { PATH: process.env.PATH, URL: api.baseUrl, KEY: key.token, ...env },
    });
    const { image, ...rest } = JSON.parse(stdout) as { image: string };
    expect(rest).toEqual({ names: ['zwx', 'a moon'], isMissing: true });
    const response = await fetch(`${api.baseUrl}${new URL(image).pathname}`);
    expect((await sharp(Buffer.from(await response.arrayBuffer())).metadata()).width).toBe(512);
  };

  it('of openapi-typescript compile with a program that uses them, and draw a picture', async () => {
    const config = join(folder, 'tsconfig.json');
    const compilerOptions = {
      ...{ strict: true, noEmit: true, target: 'es2023', lib: ['es2023', 'dom', 'dom.iterable'] },
      ...{ module: 'preserve', moduleResolution: 'bundler', skipLibCheck: true, types: ['node'] },
    };
    writeFileSync(config, JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    const { stdout } = await node(cli('typescript', 'bin/tsc'), '-p', config).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe('');
    const { code } = transformSync(inTypeScript, {
      configFile: false,
      swcrc: false,
      jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
      module: { type: 'commonjs' },
    });
    writeFileSync(join(folder, 'program.js'), code);
    await runsWell(process.execPath, 'program.js');
  });

  itWherePossible('of openapi-python-client draw a picture', async () => {
    const bin = python.stdout.trim();
    const PATH = [bin, process.env.PATH].join(delimiter);
    const { stdout, stderr } = await run(
      join(bin, 'openapi-python-client'),
      ['generate', '--path', document, '--output-path', join(folder, 'generated'), '--meta', 'none'],
      { env: { PATH } },
    );
    expect(`${stdout}${stderr}`).not.toMatch(/warning|error/i);
    writeFileSync(join(folder, 'program.py'), inPython);
    await run(join(bin, 'python'), ['-m', 'compileall', '-q', join(folder, 'generated')]);
    await runsWell(join(bin, 'python'), join(folder, 'program.py'), { PYTHONDONTWRITEBYTECODE: '1' });
  });
});
