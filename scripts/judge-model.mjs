import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from './build.mjs';
import { prepare } from './prepare.mjs';

/** `node scripts/judge-model.mjs --help`: measures how many pictures of a model match their captions. */
await prepare();
createRequire(import.meta.url)(join(root, 'dist', 'bench', 'judge-model.js'));
