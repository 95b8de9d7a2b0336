import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

/**
 * Compiles the client twice: CommonJS to `dist/cjs`, ES modules to `dist/esm`, each with its types, which are checked
 * the first time. It compiles to another folder and moves the files, so that a program that runs during the build
 * reads no missing file, and a failed build leaves the last one.
 */
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const dist = join(import.meta.dirname, 'dist');
const cache = join(import.meta.dirname, '.cache');
for (const folder of [dist, cache]) mkdirSync(folder, { recursive: true });
const fresh = mkdtempSync(join(cache, 'build-'));

/** Every file below a folder, as paths relative to it. */
const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));

function compile(kind, config) {
  const args = [tsc, '-p', join(import.meta.dirname, config), '--outDir', join(fresh, kind)];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' });
  if (status !== 0) throw new Error(`The build of ${config} failed.`);
}

try {
  compile('cjs', 'tsconfig.json');
  compile('esm', 'tsconfig.esm.json');
  writeFileSync(join(fresh, 'esm', 'package.json'), `${JSON.stringify({ type: 'module' })}\n`);
  const names = filesOf(fresh);
  for (const name of names) {
    mkdirSync(dirname(join(dist, name)), { recursive: true });
    renameSync(join(fresh, name), join(dist, name));
  }
  for (const name of filesOf(dist)) if (!names.includes(name)) rmSync(join(dist, name), { force: true });
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
