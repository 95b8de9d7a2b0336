import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Compiles the client twice: CommonJS to `dist/cjs`, ES modules to `dist/esm`, each with its types. */
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const dist = join(import.meta.dirname, 'dist');

rmSync(dist, { recursive: true, force: true });
for (const config of ['tsconfig.json', 'tsconfig.esm.json']) {
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(import.meta.dirname, config)], { stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}
writeFileSync(join(dist, 'esm', 'package.json'), `${JSON.stringify({ type: 'module' })}\n`);
