import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/free-port';

const root = process.cwd();
const folder = join(root, 'docker');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
/** The version of Node that the service is developed with. */
const nodeMajor = readFileSync(join(root, '.nvmrc'), 'utf8').trim();
const dockerfiles = readdirSync(folder).filter((name) => name.endsWith('.Dockerfile'));

interface Instruction {
  name: string;
  rest: string;
}

/** Instructions in order, with continued lines joined and comments removed. */
function instructionsOf(text: string): Instruction[] {
  const joined = text.replace(/^#.*\n/gm, '').replace(/\\\n\s*/g, ' ');
  return joined
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => ({ name: line.split(' ')[0], rest: line.slice(line.indexOf(' ') + 1) }));
}

/** Instructions of each stage. */
function stagesOf(text: string): Instruction[][] {
  const stages: Instruction[][] = [];
  for (const instruction of instructionsOf(text)) {
    if (instruction.name === 'FROM') stages.push([]);
    stages.at(-1)?.push(instruction);
  }
  return stages;
}

/** The files sent to the build, from a `.dockerignore` that first excludes everything. */
function isSent(path: string): boolean {
  const kept = readFileSync(join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  return kept.some((prefix) => path === prefix || path.startsWith(`${prefix}/`));
}

const known = new Set(['FROM', 'WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'VOLUME', 'EXPOSE', 'HEALTHCHECK', 'CMD']);

describe.each(dockerfiles)('%s', (name) => {
  const stages = stagesOf(read(name));
  const last = stages.at(-1) ?? [];
  const one = (instruction: string): string => {
    const found = last.filter((each) => each.name === instruction);
    expect(found).toHaveLength(1);
    return found[0].rest;
  };

  it('has a build stage and a run stage, with known instructions', () => {
    expect(stages).toHaveLength(2);
    expect(stages.flat().filter((each) => !known.has(each.name))).toEqual([]);
    expect(stages[0][0].rest).toMatch(new RegExp(`^node:${nodeMajor}\\.\\d+-\\S+ AS build$`));
  });

  it('copies only files that exist and are sent to the build', () => {
    const copies = stages.flat().filter((each) => each.name === 'COPY' && !each.rest.startsWith('--from='));
    const sources = copies.flatMap(({ rest }) => rest.split(/\s+/).slice(0, -1));
    expect(sources).toEqual(
      expect.arrayContaining(['package.json', 'package-lock.json', 'apps', 'libs', 'models/shapes']),
    );
    for (const source of sources) {
      expect([source, existsSync(join(root, source))]).toEqual([source, true]);
      expect([source, isSent(source)]).toEqual([source, true]);
    }
  });

  it('copies from the first stage what it made', () => {
    const copies = last.filter((each) => each.rest.startsWith('--from='));
    expect(copies.length).toBeGreaterThanOrEqual(4);
    for (const { rest } of copies) expect(rest).toMatch(/^--from=build (\/app\/|\/usr\/local\/bin\/node )/);
  });

  it('does not run as root, and can write its data', () => {
    expect(one('USER')).toBe('node');
    const order = last.map((each) => each.name);
    expect(order.lastIndexOf('RUN')).toBeLessThan(order.indexOf('USER'));
    expect(one('VOLUME')).toBe('/data');
    expect(last.find((each) => each.name === 'RUN')?.rest).toContain('-o node -g node /data');
  });

  it('runs a program that the build makes', () => {
    const [program, flag, main] = JSON.parse(one('CMD')) as string[];
    expect([program, flag]).toEqual(['node', '--enable-source-maps']);
    const source = main.replace(/^dist\//, '').replace(/\.js$/, '.ts');
    expect([source, existsSync(join(root, source))]).toEqual([source, true]);
  });

  it("checks the program's health at the port that it opens", () => {
    const check = one('HEALTHCHECK');
    const words = JSON.parse(check.slice(check.indexOf('['))) as string[];
    expect(words.slice(0, 2)).toEqual(['node', 'dist/apps/cli/src/health-check.js']);
    expect(one('CMD')).toContain(words[2]);
    expect(one('ENV')).toContain(`${words[3]}=${one('EXPOSE')}`);
  });
});

describe('scripts/images.mjs', () => {
  const script = join(root, 'scripts', 'images.mjs');
  const hasEngine = ['docker', 'podman'].some((program) => spawnSync(program, ['info']).status === 0);
  const itWithEngine = hasEngine ? it : it.skip;

  it('lists every package that an image contains', () => {
    const place = mkdtempSync(join(tmpdir(), 'darkroom-sbom-'));
    const file = join(place, 'darkroom.cdx.json');
    expect(spawnSync(process.execPath, [script, '--sbom', file]).status).toBe(0);
    const list = JSON.parse(readFileSync(file, 'utf8')) as {
      metadata: { component: { name: string } };
      components: { name: string; group?: string; version: string; licenses?: object[] }[];
    };
    rmSync(place, { recursive: true });
    const listed = new Set(list.components.map(({ name, version }) => `${name}@${version}`));
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { name?: string; version: string; dev?: true; devOptional?: true; link?: true }>;
    };
    const installed = Object.entries(packages).flatMap(([path, { name, version, dev, devOptional, link }]) =>
      path.includes('node_modules/') && !dev && !devOptional && !link
        ? [`${name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`]
        : [],
    );
    expect(installed.length).toBeGreaterThan(150);
    expect(installed.filter((name) => !listed.has(name))).toEqual([]);
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object };
    const names = new Set(list.components.map(({ name }) => name));
    expect(Object.keys(dependencies).filter((name) => !names.has(name))).toEqual([]);
    expect(list.metadata.component.name).toBe('darkroom');
  });

  itWithEngine(
    'builds images that run without rights on a file system that they cannot change',
    () => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
      expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
      expect(stdout.match(/ runs as user 1000, on a read-only file system\./g)).toHaveLength(2);
    },
    1_800_000,
  );
});

describe('health-check', () => {
  let place: string;
  let server: ChildProcess;
  let port: string;

  beforeEach(async () => {
    place = mkdtempSync(join(tmpdir(), 'darkroom-health-'));
    const main = join(place, 'main.js');
    writeFileSync(
      main,
      `require('http').createServer((_, r) => r.end()).listen(0, '127.0.0.1', function () { console.log(this.address().port); });`,
    );
    server = spawn('node', [main], { stdio: ['ignore', 'pipe', 'inherit'] });
    port = String((await once(server.stdout!, 'data'))[0]).trim();
  });

  afterEach(() => {
    server.kill('SIGKILL');
    rmSync(place, { recursive: true });
  });

  const program = join(root, 'dist/apps/cli/src/health-check.js');
  const check = (asked = port): number | null =>
    spawnSync(process.execPath, [program, join(place, 'main.js'), 'PORT'], { env: { PORT: asked, TMPDIR: place } })
      .status;
  /**
   * A check that gets no answer, at a port where nothing listens: one of the stopped program would wait for its time
   * limit.
   */
  const checkSilent = async (): Promise<number | null> => check(String(await freePort()));
  const remember = (ago: { askedMs: number; silentMs?: number }): void =>
    writeFileSync(
      join(place, 'darkroom-health.json'),
      JSON.stringify({
        pid: server.pid,
        askedAt: Date.now() - ago.askedMs,
        ...(ago.silentMs && { silentSince: Date.now() - ago.silentMs }),
      }),
    );

  it('succeeds while the program answers', () => {
    expect(check()).toBe(0);
  });

  it('kills a program that has been silent for 15 seconds, and not before', async () => {
    expect(check()).toBe(0);
    server.kill('SIGSTOP');
    remember({ askedMs: 10_000 });
    expect(await checkSilent()).toBe(1);
    expect(readFileSync(`/proc/${server.pid}/stat`, 'utf8')).toMatch(/ T /);
    remember({ askedMs: 5_000, silentMs: 15_000 });
    const ended = once(server, 'exit');
    expect(await checkSilent()).toBe(1);
    await expect(ended).resolves.toEqual([null, 'SIGKILL']);
  });

  it('leaves a starting program alone, and one that was silent while the machine slept', async () => {
    server.kill('SIGSTOP');
    expect(await checkSilent()).toBe(1);
    remember({ askedMs: 3_600_000, silentMs: 3_600_000 });
    expect(await checkSilent()).toBe(1);
    server.kill('SIGCONT');
    expect(check()).toBe(0);
  });
});

describe('compose.yaml', () => {
  const text = read('compose.yaml');
  const services = text.slice(text.indexOf('\nservices:'), text.indexOf('\nvolumes:'));
  const bodyOf = (service: string): string => {
    const body = new RegExp(`\\n  ${service}:\\n((?:    .*\\n|\\n)+)`).exec(`${services}\n`)?.[1];
    if (!body) throw new Error(`There is no service ${service}.`);
    return body;
  };

  it('has every part of the service', () => {
    const names = [...services.matchAll(/^ {2}(\w+):$/gm)].map(([, name]) => name);
    expect(names).toEqual(['postgres', 'redis', 'migrate', 'api', 'inference']);
  });

  it('builds from Dockerfiles that exist', () => {
    const files = [...text.matchAll(/docker\/[\w.-]+\.Dockerfile/g)].map(([file]) => file);
    expect(files.length).toBeGreaterThan(1);
    for (const file of files) expect([file, existsSync(join(root, file))]).toEqual([file, true]);
  });

  it('checks the health of its stores, and starts in order', () => {
    for (const store of ['postgres', 'redis']) expect(bodyOf(store)).toContain('healthcheck:');
    expect(bodyOf('migrate')).toContain('postgres: { condition: service_healthy }');
    expect(bodyOf('api')).toContain('migrate: { condition: service_completed_successfully }');
    expect(bodyOf('inference')).toContain('depends_on: *needs');
  });

  it('gives a process more time to end than it needs', () => {
    for (const service of ['api', 'inference']) expect(bodyOf(service)).toContain('stop_grace_period: 30s');
  });

  it('restarts what the health check killed, which is not the first process', () => {
    for (const service of ['api', 'inference'])
      for (const line of ['restart: unless-stopped', 'init: true']) expect(bodyOf(service)).toContain(line);
  });

  it('runs the service without rights, on a file system that it cannot change', () => {
    const lines = [
      'read_only: true',
      "tmpfs: ['/tmp']",
      "cap_drop: ['ALL']",
      "security_opt: ['no-new-privileges:true']",
    ];
    for (const service of ['api', 'inference']) for (const line of lines) expect(bodyOf(service)).toContain(line);
  });

  it('keeps every job', () => {
    expect(bodyOf('redis')).toMatch(/appendonly', 'yes'.*noeviction/);
  });

  it('contains no password, and .env.example names its variables', () => {
    const example = read('.env.example');
    const variables = new Set([...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    expect(variables.size).toBeGreaterThan(5);
    for (const name of variables) expect(example).toMatch(new RegExp(`^${name}=`, 'm'));
    expect(example).toMatch(/^POSTGRES_PASSWORD=$/m);
  });
});
