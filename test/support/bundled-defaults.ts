import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaults } from '@app/domain';
import type { ModelDefaults } from '@app/model-store';

const file = join(__dirname, '..', '..', 'models', 'shapes', 'darkroom.json');
const read = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ModelDefaults) : {};
const { training: _training, ...own } = read;

/** Settings that the bundled model draws with where a request does not say. */
export const bundledDefaults = { cfg: defaults.cfg, steps: defaults.steps, scheduler: null, ...own };
