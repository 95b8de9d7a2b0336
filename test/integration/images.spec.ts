import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import dockerignore from '@balena/dockerignore';

const root = resolve(__dirname, '..', '..');
const docker = join(root, 'docker');
const read = (...parts: string[]): string => readFileSync(join(root, ...parts), 'utf8');
const images = readdirSync(docker).filter((name) => name.endsWith('.Dockerfile'));
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
})
  .trim()
  .split('\n');

interface Stage {
  base: string;
  /** Paths of the context that it copies. */
  copied: string[];
  commands: string[];
}

/** The stages of an image's file. */
function stagesOf(name: string): Stage[] {
  const lines = read('docker', name).replaceAll('\\\n', '').split('\n');
  const stages: Stage[] = [];
  for (const line of lines) {
    const [, word, rest] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (word === 'FROM') stages.push({ base: rest, copied: [], commands: [] });
    else if (word === 'COPY' && !rest.startsWith('--from'))
      stages.at(-1)!.copied.push(
        ...rest
          .replace(/^--chown=\S+ /, '')
          .split(/\s+/)
          .slice(0, -1),
      );
    else if (word === 'RUN') stages.at(-1)!.commands.push(rest);
  }
  return stages;
}

const context = dockerignore({ ignorecase: false }).add(read('.dockerignore'));
const inContext = (files: readonly string[]): string[] => files.filter((file) => !context.ignores(file));
/** Files of the context that a stage copies. */
const filesOf = ({ copied }: Stage): string[] =>
  inContext(tracked).filter((file) => copied.some((path) => file === path || file.startsWith(`${path}/`)));

let place: string;
beforeEach(() => (place = mkdtempSync(join(tmpdir(), 'darkroom-image-'))));
afterEach(() => rmSync(place, { recursive: true }));

function put(files: readonly string[]): void {
  for (const file of files) {
    mkdirSync(join(place, dirname(file)), { recursive: true });
    cpSync(join(root, file), join(place, file));
  }
}

/** What `npm ci --omit=dev` installs, from what is installed here. */
function installForProduction(): void {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { dev?: true; link?: true }>;
  };
  for (const [path, { dev, link }] of Object.entries(packages)) {
    if (!path.startsWith('node_modules/') || dev || link || !existsSync(join(root, path))) continue;
    const nested = join(root, path, 'node_modules');
    cpSync(join(root, path), join(place, path), { recursive: true, filter: (file) => !file.startsWith(nested) });
  }
  mkdirSync(join(place, 'node_modules', '.bin'), { recursive: true });
}

const run = (args: string[], env: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, args, { cwd: place, encoding: 'utf8', env: { ...process.env, ...env } });

const listPackages = (cwd: string) =>
  spawnSync(process.execPath, ['--input-type=module', '-'], {
    cwd,
    input: read('scripts', 'image-packages.mjs'),
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });

describe.each(images)('docker/%s', (name) => {
  const [build, modules, final] = stagesOf(name);

  it('builds from no more than what it copies of the context, and starts with the packages that it keeps', () => {
    put(filesOf(build));
    symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'));
    expect(build.commands.at(-1)).toBe('node scripts/build.mjs');
    const built = run(['scripts/build.mjs']);
    expect([built.status, built.stderr]).toEqual([0, '']);
    rmSync(join(place, 'node_modules'));

    for (const folder of readdirSync(place)) if (folder !== 'dist') rmSync(join(place, folder), { recursive: true });
    put([...filesOf(modules), ...filesOf(final)]);
    installForProduction();
    const slim = /^node (scripts\/slim-modules\.mjs) (\w+)$/.exec(modules.commands.at(-1)!)!;
    expect(run(slim.slice(1))).toMatchObject({ status: 0, stderr: '' });
    // It fails for a package whose licence was removed.
    expect(listPackages(place)).toMatchObject({ status: 0, stderr: '' });
    const main = /CMD \["node", "--enable-source-maps", "(.*)"\]/.exec(read('docker', name))![1];
    const started = run([main], {
      NODE_ENV: 'production',
      DATABASE_URL: 'postgres://nobody:x@127.0.0.1:9/none',
      DATA_DIR: join(place, 'data'),
      MODELS_DIR: join(place, 'models'),
    });
    expect(started.stderr).toMatch(/could not start: .*ECONNREFUSED/);
  });

  it('copies its packages before its sources, so that these do not have them installed again', () => {
    const text = read('docker', name).split('FROM ').at(-1)!;
    expect(text.indexOf('/app/node_modules')).toBeGreaterThan(0);
    expect(text.indexOf('/app/node_modules')).toBeLessThan(text.indexOf('/app/dist'));
    expect(build.commands[0]).toMatch(/^npm ci/);
    expect(modules.copied.filter((path) => !/package|slim-modules/.test(path))).toEqual([]);
  });
});

it('The context of the images has no file of a person, whatever stands in the folder', () => {
  const stray = ['.env', 'docker/.env', 'apps/api/.env.local', '.npmrc', 'packages/client/.npmrc', 'apps/api/x.log'];
  const others = [
    '.git/config',
    '.darkroom/api-key',
    'models/mine/unet.safetensors',
    'apps/api/src/a.spec.ts',
    'a.pem',
  ];
  expect(inContext([...stray, ...others, 'node_modules/a/index.js', 'libs/a/node_modules/b.js'])).toEqual([]);
});

it('What an image says of its packages names every package that is installed', () => {
  const { status, stdout } = listPackages(root);
  expect(status).toBe(0);
  const { components } = JSON.parse(stdout) as { components: { type: string; name: string; purl?: string }[] };
  const listed = new Set(components.map(({ purl }) => purl));
  const { packages } = JSON.parse(read('node_modules', '.package-lock.json')) as {
    packages: Record<string, { name?: string; version: string; link?: true }>;
  };
  const installed = Object.entries(packages).flatMap(([path, { name = path
        .split('node_modules/')
        .at(-1)!, version, link }]) =>
    link || !path.includes('node_modules/') ? [] : [`pkg:npm/${name.replace('@', '%40')}@${version}`],
  );
  expect(installed.length).toBeGreaterThan(500);
  expect(installed.filter((purl) => !listed.has(purl))).toEqual([]);
  expect(components.find(({ name }) => name === 'c2pa')?.purl).toMatch(/^pkg:cargo\/c2pa@\d/);
  const system = components.find(({ type }) => type === 'operating-system');
  const ofSystem = [...listed].filter((purl) => purl?.startsWith('pkg:deb/'));
  expect(ofSystem.filter((purl) => !purl!.startsWith(`pkg:deb/${system?.name}/`))).toEqual([]);
});
