import { readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { dirname, join } from 'node:path';
import { buildIfNeeded } from './build.mjs';
import { installIfNeeded } from './install.mjs';

const root = dirname(import.meta.dirname);

// Node 22 keeps what it has compiled, here and in the processes that inherit the variable: a quarter less to start.
process.env.NODE_COMPILE_CACHE ??= join(root, '.cache', 'compiled');
nodeModule.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);

/** Prepares the tree: installs and builds what is missing or outdated. If nothing is, it takes about 50 ms. */
export async function prepare() {
  try {
    requireNode();
    installIfNeeded();
    await buildIfNeeded();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}

function requireNode() {
  const wanted = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    .engines.node.match(/\d+/g)
    .map(Number);
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < wanted[0] || (major === wanted[0] && minor < wanted[1]))
    throw new Error(`Node ${wanted.slice(0, 2).join('.')} or newer is needed; this is ${process.versions.node}.`);
}
