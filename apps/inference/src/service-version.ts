import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Both `apps/inference/src` and its build in `dist` are inside our package, so the nearest package.json is ours. */
function readVersion(folder: string): string {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version;
  } catch (error) {
    const parent = join(folder, '..');
    if (parent === folder) throw error;
    return readVersion(parent);
  }
}

/** Version of the service, as embedded in its pictures. */
export const serviceVersion = readVersion(__dirname);
