import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { transformSync } from '@swc/core';
import { startTestApi } from '../support/api';
import { clientFolder, installPackedClient } from '../support/packed-packages';
import { ofSuite } from '../support/of-suite';

const root = resolve(__dirname, '..', '..');
const run = promisify(execFile);

/** The output of each program of the README, in order. */
const prints: readonly RegExp[] = [
  /^sandbox drew http\S+\.png\n$/,
  /^It took longer, and has succeeded\.\n$/,
  /^(?:\d+ before it\n)*(?:step [1-4] of 4\n)*it has succeeded\n$/,
  /^all of them\ntrue true\n$/,
  /^a zwx star on a red background: 1 picture\n$/,
  /^robot is ready, after [1-9]\d* steps\n$/,
  /^a yellow square has succeeded\n$/,
  /^one Generation\n400 ValidationFailed \/cfg\n$/,
];

const built = ['cjs', 'esm'].map((kind) => join(clientFolder, 'dist', kind, 'index.js'));
const isBuilt = () => built.every((file) => existsSync(file));

const programs = [...readFileSync(join(clientFolder, 'README.md'), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(
  ([, source]) => source,
);

/** A page's program: it knows `fetch` and the DOM, and nothing of Node. */
const inBrowser = `
import { createClient } from '@darkroom/client';
export async function show(image: HTMLImageElement): Promise<void> {
  const client = createClient({ baseUrl: location.origin, apiKey: 'dr_key' });
  const { images } = await client.generate({ prompt: 'a star' });
  image.src = URL.createObjectURL(new Blob([await client.download(images[0])]));
}
`;

describe('The tarball of @darkroom/client, installed in an empty folder', () => {
  const api = ofSuite(() => startTestApi({ PUBLIC_URL: 'https://pictures.example' }));
  const key = ofSuite(() => api.createKey({ sandbox: true }));
  let folder: string;
  let files: string[];
  /** How often the compiled client was looked for while it was packed, and how often it was not there. */
  const looks = { all: 0, missed: 0 };

  beforeAll(async () => {
    // Packing builds it; whether these stand in for an earlier build or are one makes no difference.
    for (const file of built.filter((file) => !existsSync(file))) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, '');
    }
    const watch = setInterval(() => {
      looks.all++;
      if (!isBuilt()) looks.missed++;
    }, 5);
    ({ folder, files } = await installPackedClient().finally(() => clearInterval(watch)));
  });

  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
  });

  const node = async (file: string) => {
    const { stdout } = await run(process.execPath, [file], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        DARKROOM_URL: api.baseUrl,
        DARKROOM_API_KEY: key.token,
        DARKROOM_WEBHOOK_SECRET: key.webhookSecret,
        PHOTOS: join(root, 'docs', 'robot'),
        WEIGHTS: join(root, 'test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors'),
      },
    });
    return stdout;
  };
  const script = (source: string, type: 'es6' | 'commonjs') =>
    transformSync(source, {
      configFile: false,
      swcrc: false,
      jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
      module: { type },
    }).code;
  const compile = (name: string, names: string[], compilerOptions: object) => {
    const config = join(folder, `${name}.json`);
    const options = { strict: true, noEmit: true, target: 'es2023', skipDefaultLibCheck: true, ...compilerOptions };
    writeFileSync(config, JSON.stringify({ compilerOptions: options, files: names }));
    return run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', config]).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    );
  };

  it('holds both kinds of modules, the licence and no sources', () => {
    const kept = files.filter((path) => !/^dist\/(?:cjs|esm)\/[\w-]+(?:\.d\.ts|\.js)$/.test(path));
    expect(kept.sort()).toEqual(['LICENSE', 'README.md', 'dist/esm/package.json', 'package.json']);
    expect(files.filter((path) => path.startsWith('dist/esm/')).length).toBeGreaterThan(5);
    expect(readFileSync(join(clientFolder, 'LICENSE'), 'utf8')).toBe(readFileSync(join(root, 'LICENSE'), 'utf8'));
  });

  it('is there all the time while it is built again', () => {
    expect(looks.all).toBeGreaterThan(10);
    expect(looks.missed).toBe(0);
  });

  it('compiles the programs of its README, as ES modules and as CommonJS', async () => {
    expect(programs).toHaveLength(prints.length);
    const names = programs.flatMap((source, index) =>
      [`${index}.mts`, `${index}.cts`].map((name) => ({ name, source })),
    );
    for (const { name, source } of names) writeFileSync(join(folder, name), source);
    const types = join(root, 'node_modules', '@types');
    const { stdout } = await compile(
      'node',
      names.map(({ name }) => name),
      // The client's own types are checked with those of a page, below.
      { module: 'node20', lib: ['es2023'], types: ['node'], typeRoots: [types], skipLibCheck: true },
    );
    expect(stdout).toBe('');
  });

  it('compiles for a page, which has no types of Node', async () => {
    writeFileSync(join(folder, 'page.ts'), inBrowser);
    const { stdout } = await compile('page', ['page.ts'], {
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2023', 'dom', 'dom.iterable'],
      types: [],
    });
    expect(stdout).toBe('');
  });

  it.each(programs.map((source, index) => [index + 1, source, prints[index]] as const))(
    'runs program %i of its README',
    async (number, source, printed) => {
      const file = join(folder, `program-${number}.mjs`);
      writeFileSync(file, script(source, 'es6'));
      expect(await node(file)).toMatch(printed);
    },
  );

  it('runs as CommonJS', async () => {
    const file = join(folder, 'program.cjs');
    writeFileSync(file, script(programs[0], 'commonjs'));
    expect(await node(file)).toMatch(prints[0]);
  });

  it('imports nothing of Node, nor does what it depends on', () => {
    const modules = readdirSync(join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.c?js$/.test(name),
    );
    expect(modules.length).toBeGreaterThan(20);
    const imports = modules.flatMap((name) =>
      [
        ...readFileSync(join(folder, 'node_modules', name), 'utf8').matchAll(
          /(?:from|import|require)[ (]*(['"])(.*?)\1/g,
        ),
      ].map(([, , imported]) => imported),
    );
    expect(imports).toContain('standardwebhooks');
    expect(imports.filter((name) => isBuiltin(name))).toEqual([]);
  });
});
