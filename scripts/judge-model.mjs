import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from './build.mjs';
import { prepare } from './prepare.mjs';

/** `node scripts/judge-model.mjs --help`: how many pictures of a model show what their captions say. */
await prepare();
createRequire(import.meta.url)(join(root, 'dist', 'bench', 'judge-model.js'));
