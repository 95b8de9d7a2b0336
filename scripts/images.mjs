import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * `node scripts/images.mjs [names]`: builds the images of docker/ with Docker or Podman, and tries them: each runs as
 * its user on a read-only file system. With --sbom it only writes what they contain; with --push <prefix> it pushes
 * them. Exits with 77 if there is no container engine.
 */
const outOfReach = 77;
const root = dirname(import.meta.dirname);
const readJson = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'));
const { name, version } = readJson('package.json');
const all = readdirSync(join(root, 'docker')).flatMap((name) => /^(.*)\.Dockerfile$/.exec(name)?.[1] ?? []);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { sbom: { type: 'string' }, push: { type: 'string' }, help: { type: 'boolean' } },
});
if (values.help) {
  console.log(`node scripts/images.mjs [${all.join('|')}]   builds and tries images; all but CUDA's by default
  --sbom <file>     only writes the list of their npm packages, in CycloneDX's format
  --push <prefix>   pushes them as <prefix>darkroom-<name>:${version}`);
} else if (values.sbom) writeSbom(values.sbom);
else buildImages();

/**
 * Packages of npm in the images: the same for all, because they are built from one lock file. npm's own
 * `--omit=dev` also leaves out what both kinds of dependencies need, so npm is shown a lock file without the
 * packages that are only for development.
 */
function writeSbom(file) {
  const place = mkdtempSync(join(tmpdir(), 'darkroom-sbom-'));
  const [manifest, lock] = ['package.json', 'package-lock.json'].map(readJson);
  delete manifest.devDependencies;
  delete manifest.workspaces;
  // Packages of a workspace are installed like those of the root.
  const ours = Object.entries(lock.packages).filter(([path]) => !path.includes('node_modules/'));
  manifest.dependencies = Object.assign({}, ...ours.map(([, { dependencies }]) => dependencies));
  lock.packages[''] = { name, version, dependencies: manifest.dependencies };
  for (const [path, { dev, devOptional, link }] of Object.entries(lock.packages))
    if (dev || devOptional || link || (path !== '' && !path.startsWith('node_modules/'))) delete lock.packages[path];
  writeFileSync(join(place, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(place, 'package-lock.json'), JSON.stringify(lock));
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: place, encoding: 'utf8', maxBuffer: 2 ** 28 });
  rmSync(place, { recursive: true });
  if (status !== 0) fail(`npm does not make the list: ${stderr.trim()}`);
  const list = JSON.parse(stdout);
  // npm takes the name of the folder.
  list.metadata.component.name = name;
  writeFileSync(file, `${JSON.stringify(list, undefined, 2)}\n`);
  console.log(`${file} lists ${list.components.length} packages.`);
}

function buildImages() {
  const unknown = positionals.find((name) => !all.includes(name));
  if (unknown) fail(`There is no docker/${unknown}.Dockerfile.`);
  const engine = ['docker', 'podman'].find((program) => spawnSync(program, ['info']).status === 0);
  if (!engine) {
    console.error('No container engine runs here: install Docker or Podman, and start it.');
    process.exit(outOfReach);
  }
  const names = positionals.length > 0 ? positionals : all.filter((name) => !name.includes('cuda'));
  mkdirSync(join(root, '.cache'), { recursive: true });
  writeSbom(join(root, '.cache', 'darkroom.cdx.json'));
  for (const image of names) {
    const tag = `darkroom-${image}`;
    run(engine, ['build', '--file', `docker/${image}.Dockerfile`, '--tag', tag, '.']);
    tryImage(engine, tag);
    if (!values.push) continue;
    const target = `${values.push}${tag}:${version}`;
    run(engine, ['tag', tag, target]);
    run(engine, ['push', target]);
  }
}

/** A database that is not there is the first thing that a whole image complains about. */
function tryImage(engine, tag) {
  const limits = ['--read-only', '--tmpfs=/tmp', '--tmpfs=/data:uid=1000,gid=1000', '--cap-drop=ALL', '--network=none'];
  const run = (...args) =>
    spawnSync(engine, ['run', '--rm', ...limits, '--security-opt=no-new-privileges', ...args], { encoding: 'utf8' });
  const user = run(tag, 'node', '-p', 'process.getuid()').stdout.trim();
  if (user !== '1000') fail(`${tag} runs as user ${user}.`);
  const { stderr, stdout } = run('--env=DATABASE_URL=postgres://nobody:x@127.0.0.1:9/none', tag);
  if (!/could not start: .*ECONNREFUSED/.test(stderr)) fail(`${tag} does not start: ${stdout}${stderr}`);
  console.log(`${tag} runs as user ${user}, on a read-only file system.`);
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) fail(`${program} ${args[0]} ended with ${error?.message ?? status}.`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
