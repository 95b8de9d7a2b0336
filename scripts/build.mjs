import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

export const root = dirname(import.meta.dirname);
const dist = join(root, 'dist');
const stamp = join(dist, '.stamp');
/** An image is built without the last of them. */
const folders = ['apps', 'libs', 'packages/client/src', 'bench', 'test/torture', 'test/support'].filter((folder) =>
  existsSync(join(root, folder)),
);
/** The page has a stamp of its own: Vite is slowest, and its sources seldom change. */
const page = 'apps/web';
const pageStamp = join(dist, page, '.stamp');
const pageFolders = [
  ...[page, 'packages/client/src', 'packages/client/README.md'],
  ...['docs', 'docker', 'CHANGELOG.md', 'SECURITY.md'],
];

/** Relative and sorted. */
function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(relative(folder, entry.parentPath), entry.name))
    .sort();
}

/**
 * Changes whenever a source, the compiler's settings or the installed packages change. It reads the status of files,
 * not their contents.
 */
function fingerprint(paths) {
  const hash = createHash('sha256');
  const isFolder = (path) => statSync(join(root, path)).isDirectory();
  const filesOf = (path) => (isFolder(path) ? filesBelow(join(root, path)).map((file) => join(path, file)) : [path]);
  const files = paths.flatMap(filesOf);
  const sources = files.filter((file) => !file.endsWith('.spec.ts'));
  for (const file of [...sources, 'openapi.json', '.swcrc', 'package-lock.json', 'scripts/build.mjs']) {
    const { size, mtimeMs } = statSync(join(root, file));
    hash.update(`${file}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined);
const isPageBuilt = () => read(pageStamp) === fingerprint(pageFolders);

/** Whether `dist` was built from the current sources. */
export function isBuilt() {
  return read(stamp) === fingerprint(folders) && isPageBuilt();
}

/** The fingerprint of the sources of `dist`. */
export function builtFrom() {
  return `${read(stamp)} ${read(pageStamp)}`;
}

/**
 * Compiles each source to a file of the same name in `dist`, copies other files (JSON, HTML), and removes files without
 * a source. Each file is made beside `dist` and renamed, so a process that starts meanwhile never reads half a file.
 */
async function build() {
  mkdirSync(dist, { recursive: true });
  const made = mkdtempSync(`${dist}.part-`);
  try {
    await import('../packages/client/schema.mjs');
    writeFileSync(join(made, '.stamp'), fingerprint(folders));
    compile(made);
    const keepsPage = isPageBuilt();
    if (!keepsPage) await buildPage(join(made, page));
    const isKept = (file) => existsSync(join(made, file)) || (keepsPage && file.startsWith(join(page, sep)));
    const outdated = filesBelow(dist).filter((file) => !isKept(file));
    // Stamps come last: they say that all else is there.
    const isStamp = (file) => Number(file.endsWith('.stamp'));
    for (const file of filesBelow(made).sort((a, b) => isStamp(a) - isStamp(b))) {
      mkdirSync(dirname(join(dist, file)), { recursive: true });
      renameSync(join(made, file), join(dist, file));
    }
    for (const file of outdated) rmSync(join(dist, file), { force: true });
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function compile(output) {
  const swc = createRequire(import.meta.url).resolve('@swc/cli/bin/swc.js');
  const ignored = ['**/*.spec.ts', '**/*.d.ts', `${page}/**`].join(',');
  const options = ['--out-dir', output, '--copy-files', '--ignore', ignored, '--quiet'];
  const imports = ['--config', 'jsc.rewriteRelativeImportExtensions=true'];
  execFileSync(process.execPath, [swc, ...folders, ...options, ...imports], { cwd: root, stdio: 'inherit' });
}

async function buildPage(output) {
  const print = fingerprint(pageFolders);
  const { build } = await import('vite');
  // Tests set another value, with which Vite takes development builds of packages; they should try what users get.
  process.env.NODE_ENV = 'production';
  const folder = join(root, page);
  const configFile = join(folder, 'vite.config.mjs');
  await build({ root: folder, configFile, logLevel: 'warn', build: { outDir: output, emptyOutDir: true } });
  writeFileSync(join(output, '.stamp'), print);
}

/**
 * Builds only if a source has changed, in a process of its own: compiler and bundler leave 600 MB to a process
 * that may run for months.
 */
export async function buildIfNeeded() {
  if (isBuilt()) return;
  try {
    await promisify(execFile)(process.execPath, [import.meta.filename], { maxBuffer: Infinity });
  } catch (error) {
    throw new Error(error.stderr?.trim() || error.message, { cause: error });
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const startedAt = performance.now();
  try {
    if (process.argv.includes('--if-needed') && isBuilt()) process.exit(0);
    await build();
    console.log(`Built in ${Math.round(performance.now() - startedAt)} ms.`);
  } catch (error) {
    console.error(`The build failed.\n${error.message}`);
    process.exit(1);
  }
}
