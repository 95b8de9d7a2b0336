import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { transformSync } from '@swc/core';
import type { TestKey } from '../support/api';
import type { TestService } from '../support/service';
import { startTestService } from '../support/service';

const root = resolve(__dirname, '..', '..');
const client = join(root, 'packages', 'client');
const run = promisify(execFile);
const node = (file: string, args: string[], env: NodeJS.ProcessEnv = process.env) =>
  run(process.execPath, [join(root, file), ...args], { cwd: root, env });

/** The output of each program of the README, in order. */
const prints: readonly RegExp[] = [
  /^shapes@[0-9a-f]{12} drew http\S+\.png\n$/,
  /^It took longer, and has succeeded\.\n$/,
  /^a zwx star on a red background: 1 picture\n$/,
  /^a yellow square has succeeded\n$/,
  /^one Generation\n400 ValidationFailed \/cfg\n$/,
];

const programs = [...readFileSync(join(client, 'README.md'), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(
  ([, source]) => source,
);

jest.setTimeout(600_000);

describe('@darkroom/client', () => {
  let service: TestService;
  let key: TestKey;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-client-'));
    service = await startTestService({ workers: 1 });
    key = await service.createKey();
    await node('node_modules/typescript/bin/tsc', ['-p', client]);
  });

  afterAll(async () => {
    await service.close();
    rmSync(folder, { recursive: true });
  });

  it('has the types of the committed document; "npm run openapi" updates them', async () => {
    const schema = join(client, 'src', 'schema.ts');
    const args = ['openapi.json', '--output', schema, '--default-non-nullable=false', '--check'];
    await expect(node('node_modules/openapi-typescript/bin/cli.js', args)).resolves.toBeDefined();
  });

  it('compiles the programs of its README', async () => {
    expect(programs).toHaveLength(prints.length);
    const files = programs.map((source, index) => {
      const file = join(folder, `program-${index}.ts`);
      writeFileSync(file, source);
      return file;
    });
    const config = join(folder, 'tsconfig.json');
    const compilerOptions = {
      noEmit: true,
      types: ['node'],
      typeRoots: [join(root, 'node_modules', '@types')],
      paths: { '@darkroom/client': [join(client, 'dist', 'index.d.ts')] },
    };
    writeFileSync(
      config,
      JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files }),
    );
    await expect(node('node_modules/typescript/bin/tsc', ['-p', config])).resolves.toMatchObject({ stdout: '' });
  });

  it.each(programs.map((source, index) => [index + 1, source, prints[index]] as const))(
    'runs program %i of its README',
    async (number, source, printed) => {
      const file = join(folder, `program-${number}.cjs`);
      const { code } = transformSync(source, {
        configFile: false,
        swcrc: false,
        jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
        module: { type: 'commonjs' },
      });
      writeFileSync(file, code);
      const { stdout } = await run(process.execPath, [file], {
        env: {
          PATH: process.env.PATH,
          NODE_PATH: join(root, 'node_modules'),
          DARKROOM_URL: service.baseUrl,
          DARKROOM_API_KEY: key.token,
          DARKROOM_WEBHOOK_SECRET: key.webhookSecret,
          WEIGHTS: join(root, 'test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'),
        },
      });
      expect(stdout).toMatch(printed);
    },
  );
});
