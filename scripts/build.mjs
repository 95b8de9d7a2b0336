import { execFile, execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { buildPage } from './build-page.mjs';
import { bundleLibraries, requireBundles } from './bundle-libraries.mjs';

export const root = dirname(import.meta.dirname);
const dist = join(root, 'dist');
const stamp = join(dist, '.stamp');
const sourceFolders = ['apps', 'libs', 'packages/client/src', 'bench', 'test/torture', 'test/support'];
const skipped = new Set(['node_modules', 'dist', 'test']);
/** Sources of the page, which Vite compiles; the client's are compiled for both. */
const pageFolder = join(root, 'apps', 'web');
const builtPage = join(dist, 'apps', 'web');
const pageStamp = join(builtPage, '.stamp');
const bundlesFolder = join(dist, 'libraries');
/** Names the newest folder in it. */
const bundlesStamp = join(bundlesFolder, '.stamp');
/** What the bundles of libraries follow from, beside the installed packages. */
const bundleSources = [
  ...['bundle-libraries.mjs', 'load-bundle.cjs'].map((name) => join(import.meta.dirname, name)),
  join(root, 'package.json'),
];

/** Every file below a folder, as sorted absolute paths. */
function walk(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      if (entry.isDirectory()) return skipped.has(entry.name) ? [] : walk(join(folder, entry.name));
      return [join(folder, entry.name)];
    });
}

const isSource = (file) => !/\.spec\.ts$|\.d\.ts$|\.md$/.test(file);
const sources = () =>
  sourceFolders
    .flatMap((folder) => walk(join(root, folder)))
    .filter((file) => isSource(file) && !file.startsWith(pageFolder + sep));
const sourcesPrint = () => fingerprint([...sources(), ...bundleSources]);
const docsFolder = join(root, 'docs');
const pageSources = () => [
  ...[pageFolder, join(root, 'packages/client/src')].flatMap(walk).filter(isSource),
  // Pages are made of them.
  ...walk(docsFolder).filter((file) => file.endsWith('.md')),
  join(root, 'openapi.json'),
];

/**
 * Changes whenever a source, the compiler's settings, or the installed packages change. It reads no file
 * contents, only their status.
 */
function fingerprint(files) {
  const hash = createHash('sha256');
  for (const file of [...files, join(root, '.swcrc'), join(root, 'package-lock.json'), import.meta.filename]) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${relative(root, file)}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

/** Whether `dist` was built from the current sources. */
export function isBuilt() {
  return read(stamp) === sourcesPrint() && isCached(librariesFolder()) && isPageBuilt();
}

/** Apart, because it takes longer than all else, and its sources seldom change together with the others. */
function isPageBuilt() {
  return read(pageStamp) === fingerprint(pageSources());
}

/**
 * Each state of the libraries has a folder of its own, so a running process, which loads some of them
 * late, never mixes two.
 */
const librariesFolder = () => join(bundlesFolder, fingerprint(bundleSources).slice(0, 12));
const isBundled = (folder) => existsSync(join(folder, '.stamp'));
/** Another version of Node compiles anew. */
const isCached = (folder) => read(join(folder, '.cached')) === process.version;

/** The fingerprint of the sources of `dist`. */
export function builtFrom() {
  const prints = [read(stamp), read(pageStamp)];
  return prints.includes(undefined) ? undefined : prints.join(' ');
}

function read(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** Writes another file and renames it, so that a process that starts during a build never reads half a file. */
function write(file, content) {
  const temporary = `${file}.${randomUUID().slice(0, 8)}.part`;
  writeFileSync(temporary, content);
  renameSync(temporary, file);
}

/**
 * Compiles apps, libs, the client and bench to `dist` and removes files without a source. Other files (JSON, HTML) are
 * copied. The page is built if its sources have changed.
 * @returns {Promise<number>} the number of files written.
 */
async function build() {
  const { transformFile } = await import('@swc/core');
  const options = { swcrc: true, cwd: root, sourceMaps: true, jsc: { rewriteRelativeImportExtensions: true } };
  const files = sources();
  const print = sourcesPrint();
  const libraries = await bundleLibrariesIfNeeded();
  const outputs = new Set([stamp]);
  const problems = [];
  await Promise.all(
    files.map(async (file) => {
      const output = join(dist, relative(root, file)).replace(/\.ts$/, '.js');
      mkdirSync(dirname(output), { recursive: true });
      outputs.add(output);
      if (!file.endsWith('.ts')) return write(output, readFileSync(file));
      outputs.add(`${output}.map`);
      try {
        const { code: compiled, map } = await transformFile(file, { ...options, filename: file });
        const code = requireBundles(compiled, relative(dirname(output), libraries).replaceAll(sep, '/'));
        write(output, `${code}\n//# sourceMappingURL=${output.slice(dirname(output).length + 1)}.map\n`);
        write(`${output}.map`, map);
      } catch (error) {
        problems.push(`${relative(root, file)}: ${error.message}`);
      }
    }),
  );
  if (problems.length > 0) throw new Error(`The build failed.\n${problems.join('\n')}`);
  for (const file of walk(dist))
    if (
      !outputs.has(file) &&
      !file.endsWith('.part') &&
      ![builtPage, bundlesFolder].some((part) => file.startsWith(part))
    )
      rmSync(file);
  await buildPageIfNeeded();
  cacheBundlesIfNeeded(libraries);
  write(stamp, print);
  return files.length;
}

/** @returns the folder of the bundles. */
async function bundleLibrariesIfNeeded() {
  const folder = librariesFolder();
  if (isBundled(folder)) return folder;
  const bundles = await bundleLibraries(folder);
  mkdirSync(folder, { recursive: true });
  for (const { fileName, code } of bundles) write(join(folder, fileName), code);
  const before = read(bundlesStamp);
  write(join(folder, '.stamp'), '');
  write(bundlesStamp, basename(folder));
  // A running process may still load from the folder of the last build.
  const kept = [before, basename(folder), basename(bundlesStamp)];
  for (const name of readdirSync(bundlesFolder))
    if (!kept.includes(name)) rmSync(join(bundlesFolder, name), { recursive: true, force: true });
  return folder;
}

/**
 * What V8 compiles of the bundles is written by a process that loads them as the service does;
 * processes start without it too.
 */
function cacheBundlesIfNeeded(folder) {
  if (isCached(folder)) return;
  execFileSync(process.execPath, [join(import.meta.dirname, 'cache-bundles.mjs'), dist, folder], { stdio: 'inherit' });
  write(join(folder, '.cached'), process.version);
}

async function buildPageIfNeeded() {
  if (isPageBuilt()) return;
  const print = fingerprint(pageSources());
  await buildPage(pageFolder, builtPage);
  write(pageStamp, print);
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
    const count = await build();
    console.log(`Built ${count} files in ${Math.round(performance.now() - startedAt)} ms.`);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
