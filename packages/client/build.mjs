import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import './schema.mjs';

/**
 * Compiles the client twice, with types: CommonJS to `dist/cjs`, ES modules to `dist/esm`. It compiles to another
 * folder first, so that a failed build leaves the last one, and then moves each file into place, so that none is ever
 * missing.
 */
const tsc = join(createRequire(import.meta.url).resolve('typescript'), '..', '..', 'bin', 'tsc');
const fresh = mkdtempSync(join(import.meta.dirname, 'dist.part-'));
const compile = (kind, ...options) =>
  execFileSync(process.execPath, [tsc, '--outDir', join(fresh, kind), ...options], {
    cwd: import.meta.dirname,
    stdio: 'inherit',
  });

try {
  compile('cjs', '--noEmitOnError');
  compile('esm', '--module', 'esnext', '--moduleResolution', 'bundler', '--noCheck');
  writeFileSync(join(fresh, 'esm', 'package.json'), '{"type":"module"}\n');
  for (const kind of readdirSync(fresh)) {
    const place = join(import.meta.dirname, 'dist', kind);
    mkdirSync(place, { recursive: true });
    for (const name of readdirSync(join(fresh, kind))) renameSync(join(fresh, kind, name), join(place, name));
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
