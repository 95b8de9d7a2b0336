import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { prepare } from './prepare.mjs';

/** `node scripts/run.mjs <file in dist> [arguments]`: prepares the tree, then runs the file in this process. */
const [file, ...args] = process.argv.slice(2);
await prepare();
process.argv = [process.argv[0], resolve(file), ...args];
process.setSourceMapsEnabled(true);
createRequire(import.meta.url)(process.argv[1]);
