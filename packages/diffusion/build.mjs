import { execFileSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Compiles `libs/diffusion` with its types to `dist/src`, and puts its tokenizers beside it. */
const tsc = join(createRequire(import.meta.url).resolve('typescript'), '..', '..', 'bin', 'tsc');
const library = join(import.meta.dirname, '..', '..', 'libs', 'diffusion');
const dist = join(import.meta.dirname, 'dist');

rmSync(dist, { recursive: true, force: true });
execFileSync(process.execPath, [tsc, '--noEmitOnError'], { cwd: import.meta.dirname, stdio: 'inherit' });
cpSync(join(library, 'assets'), join(dist, 'assets'), { recursive: true });
