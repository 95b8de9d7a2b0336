import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/**
 * `node scripts/cache-bundles.mjs <dist> <folder of the bundles>`: writes V8's caches of all bundles, after calling
 * much of what a start calls.
 */
const [dist, folder] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { serializeDocument } = require(join(dist, 'apps/api/src/serialize-document.js'));
require(join(dist, 'apps/inference/src/create-inference.js'));
for (const name of readdirSync(folder)) if (name.endsWith('.js')) require(join(folder, name));
await serializeDocument();
require(join(folder, 'load-bundle.cjs')).writeCaches();
