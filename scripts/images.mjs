import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * `node scripts/images.mjs [names]`: builds the images of docker/ with Docker or Podman, tries each as its user on a
 * read-only file system, and writes its contents to `.cache/<image>.cdx.json`. With --push <prefix> it pushes them when
 * all have passed. Exits with 77 if there is no container engine.
 */
const outOfReach = 77;
const root = dirname(import.meta.dirname);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const all = readdirSync(join(root, 'docker')).flatMap((name) => /^(.*)\.Dockerfile$/.exec(name)?.[1] ?? []);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    push: { type: 'string' },
    tag: { type: 'string', default: version },
    source: { type: 'string', default: 'unknown' },
    'build-option': { type: 'string', multiple: true },
    help: { type: 'boolean' },
  },
});
if (values.help)
  console.log(`node scripts/images.mjs [${all.join('|')}]   builds and tries images; all but CUDA's by default
  --push <prefix>           builds and tries all, then pushes them as <prefix>darkroom-<name>:${version}
  --tag <tag>               in place of the version; a tag that was pushed before is not rolled out again
  --source <url>            where their source is, for their labels
  --build-option <option>   is passed on to the engine's build`);
else buildImages();

function buildImages() {
  const unknown = positionals.find((name) => !all.includes(name));
  if (unknown) fail(`There is no docker/${unknown}.Dockerfile.`);
  const engine = ['docker', 'podman'].find((program) => spawnSync(program, ['info']).status === 0);
  if (!engine) {
    console.error('No container engine runs here: install Docker or Podman, and start it.');
    process.exit(outOfReach);
  }
  // The manifests for Kubernetes name the CUDA image, so it is pushed too.
  const usual = all.filter((name) => values.push || !name.includes('cuda'));
  const tags = (positionals.length > 0 ? positionals : usual).map((image) => {
    // Named as by Compose.
    const tag = `darkroom-${image}:${values.tag}`;
    // OCI's own format, Podman's default, has no health checks.
    const format = engine === 'podman' ? ['--format=docker'] : [];
    const labels = { VERSION: version, REVISION: revision(), SOURCE: values.source };
    const args = Object.entries(labels).map(([name, value]) => `--build-arg=${name}=${value}`);
    const options = [...format, ...args, ...(values['build-option'] ?? [])];
    run(engine, ['build', ...options, '--file', `docker/${image}.Dockerfile`, '--tag', tag, '.']);
    tryImage(engine, image, tag);
    return tag;
  });
  if (!values.push) return;
  for (const tag of tags) {
    run(engine, ['tag', tag, values.push + tag]);
    run(engine, ['push', values.push + tag]);
  }
}

/** The commit; `unknown` outside a git clone. */
function revision() {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : 'unknown';
}

/** A whole image gets as far as complaining about the missing database. */
function tryImage(engine, image, tag) {
  // Podman 4 has no `uid` for a file system in memory.
  const limits = ['--read-only', '--tmpfs=/tmp', '--tmpfs=/data:mode=1777', '--cap-drop=ALL', '--network=none'];
  const run = (options, command, input) =>
    spawnSync(
      engine,
      ['run', '--rm', '--interactive', ...limits, '--security-opt=no-new-privileges', ...options, tag, ...command],
      { encoding: 'utf8', input, maxBuffer: 2 ** 28 },
    );
  const user = run([], ['node', '-p', 'process.getuid()']);
  if (user.stdout.trim() !== '1000') fail(`${tag} does not run as user 1000: ${user.stdout}${user.stderr}`);
  const alone = run(['--env=DATABASE_URL=postgres://nobody:x@127.0.0.1:9/none'], []);
  if (!/could not start: .*ECONNREFUSED/.test(alone.stderr))
    fail(`${tag} does not start: ${alone.stdout}${alone.stderr}`);
  const list = join(root, '.cache', `darkroom-${image}.cdx.json`);
  const script = readFileSync(join(import.meta.dirname, 'image-packages.mjs'), 'utf8');
  const packages = run([], ['node', '--input-type=module', '-'], script);
  if (packages.status !== 0) fail(`${tag} does not say what is in it: ${packages.stderr}`);
  mkdirSync(dirname(list), { recursive: true });
  writeFileSync(list, packages.stdout);
  console.log(`${tag} runs as user 1000, on a read-only file system; ${list} lists what is in it.`);
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) fail(`${program} ${args[0]} ended with ${error?.message ?? status}.`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
