import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';

const root = process.cwd();
const folder = join(root, 'docker');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const dockerfiles = readdirSync(folder).filter((name) => name.endsWith('.Dockerfile'));

interface Instruction {
  name: string;
  rest: string;
}

/** Instructions in order, continued lines joined, comments left out. */
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

/** What the build is sent, in the form of `.dockerignore` that leaves everything out first. */
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

  it('has a stage that builds and one that runs, of instructions that are known', () => {
    expect(stages).toHaveLength(2);
    expect(stages.flat().filter((each) => !known.has(each.name))).toEqual([]);
    expect(stages[0][0].rest).toMatch(/^node:20\.\d+-\S+ AS build$/);
  });

  it('copies what exists and is sent to the build', () => {
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

  it('copies from the first stage what that made', () => {
    const copies = last.filter((each) => each.rest.startsWith('--from='));
    expect(copies.length).toBeGreaterThanOrEqual(4);
    for (const { rest } of copies) expect(rest).toMatch(/^--from=build (\/app\/|\/usr\/local\/bin\/node )/);
  });

  it('runs as somebody who is not root, and can write its data', () => {
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

  it('asks at the port that it opens whether it is ready', () => {
    const check = one('HEALTHCHECK');
    const port = one('EXPOSE');
    const variable = /process\.env\.(\w+)/.exec(check)?.[1] ?? 'none';
    expect(check).toContain('/health/ready');
    expect(one('ENV')).toContain(`${variable}=${port}`);
    // The command is JSON with a program that Node can read.
    const words = JSON.parse(check.slice(check.indexOf('['))) as string[];
    expect(() => new Script(words[2])).not.toThrow();
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

  it('asks its stores whether they are well, and starts in order', () => {
    for (const store of ['postgres', 'redis']) expect(bodyOf(store)).toContain('healthcheck:');
    expect(bodyOf('migrate')).toContain('postgres: { condition: service_healthy }');
    expect(bodyOf('api')).toContain('migrate: { condition: service_completed_successfully }');
    expect(bodyOf('inference')).toContain('depends_on: *needs');
  });

  it('leaves a process longer to end than it takes', () => {
    for (const service of ['api', 'inference']) expect(bodyOf(service)).toContain('stop_grace_period: 30s');
  });

  it('keeps every job', () => {
    expect(bodyOf('redis')).toMatch(/appendonly', 'yes'.*noeviction/);
  });

  it('carries no password, and names in .env.example what it asks for', () => {
    const example = read('.env.example');
    const variables = new Set([...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    expect(variables.size).toBeGreaterThan(5);
    for (const name of variables) expect(example).toMatch(new RegExp(`^${name}=`, 'm'));
    expect(example).toMatch(/^POSTGRES_PASSWORD=$/m);
  });
});
