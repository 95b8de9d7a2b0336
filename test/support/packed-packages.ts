import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';

const root = resolve(__dirname, '..', '..');
export const clientFolder = join(root, 'packages', 'client');

const run = promisify(execFile);

/** npm, as it runs this test or as the shell finds it. */
function npm(cwd: string, ...args: string[]): Promise<{ stdout: string }> {
  const [command, ...rest] = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm'];
  return run(command, [...rest, ...args], { cwd, env: { PATH: process.env.PATH, HOME: process.env.HOME } });
}

/** Packs a package as for a registry, into `destination`, which builds it. */
export async function packed(
  packageFolder: string,
  destination: string,
): Promise<{ filename: string; files: string[] }> {
  const options = ['--json', '--foreground-scripts=false', '--pack-destination', destination];
  const { stdout } = await npm(packageFolder, 'pack', ...options);
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as {
    filename: string;
    files: { path: string }[];
  }[];
  return { filename, files: files.map(({ path }) => path) };
}

/**
 * Packs the client, and installs the tarball in an empty folder. Dependencies are copied there from `node_modules`, so
 * that no registry is asked.
 * @returns the folder, and the files of the tarball
 */
export async function installPackedClient(): Promise<{ folder: string; files: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-client-'));
  const { filename, files } = await packed(clientFolder, folder);
  for (const needed of dependenciesOf(clientFolder))
    cpSync(needed, join(folder, relative(root, needed)), { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }));
  await npm(folder, 'install', '--offline', '--no-audit', '--no-fund', join(folder, filename));
  return { folder, files };
}

/** Direct and indirect. */
function dependenciesOf(folder: string, found = new Set<string>()): string[] {
  const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    dependencies?: Record<string, string>;
  };
  for (const name of Object.keys(dependencies)) {
    const path = join(root, 'node_modules', name);
    if (found.has(path)) continue;
    found.add(path);
    dependenciesOf(path, found);
  }
  return [...found];
}
