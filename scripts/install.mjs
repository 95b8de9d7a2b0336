import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);

/** Whether `node_modules` matches the lock file, according to npm's own record of its last run. */
export function isInstalled() {
  const packagesOf = (file) => {
    try {
      return JSON.parse(readFileSync(join(root, file), 'utf8')).packages;
    } catch {
      return undefined;
    }
  };
  const wanted = packagesOf('package-lock.json');
  const found = packagesOf('node_modules/.package-lock.json');
  if (!wanted || !found) return false;
  const isPackage = (path) => path.startsWith('node_modules/');
  return (
    Object.entries(wanted).every(([path, entry]) => {
      // npm leaves out builds for other platforms on purpose.
      if (!isPackage(path) || (!found[path] && (entry.optional || entry.devOptional))) return true;
      return found[path]?.version === entry.version && found[path]?.integrity === entry.integrity;
    }) && Object.keys(found).every((path) => !isPackage(path) || path in wanted)
  );
}

/**
 * Runs npm (the one that started this script, if any) with its output on the terminal.
 * @returns its exit status; null if it could
 * not start.
 */
export function npm(args, options) {
  const running = process.env.npm_execpath;
  const [command, ...rest] = running ? [process.execPath, running, ...args] : ['npm', ...args];
  return spawnSync(command, rest, { stdio: 'inherit', ...options }).status;
}

/** Runs `npm ci` if a package is missing or has another version. */
export function installIfNeeded() {
  if (isInstalled()) return;
  console.log('Installing the packages …');
  // Development packages are needed to build, whatever NODE_ENV is.
  const env = { ...process.env, NODE_ENV: 'development' };
  if (npm(['ci', '--no-audit', '--no-fund'], { cwd: root, env }) !== 0)
    throw new Error('The packages could not be installed.');
}
