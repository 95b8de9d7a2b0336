import { randomUUID } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Builds the page of a folder with Vite. It is built beside `output` and then takes its place, so that a process that
 * starts during a build does not find half a page.
 */
export async function buildPage(folder, output) {
  const { build } = await import('vite');
  const { NODE_ENV } = process.env;
  const unfinished = `${output}.${randomUUID().slice(0, 8)}.part`;
  try {
    // The tests set another, with which Vite takes the editions of packages for development: they try what users get.
    process.env.NODE_ENV = 'production';
    await build({
      root: folder,
      configFile: join(folder, 'vite.config.mjs'),
      logLevel: 'warn',
      build: { outDir: unfinished, emptyOutDir: true },
    });
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw new Error(`The page was not built.\n${error.message}`, { cause: error });
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  }
  const previous = `${output}.${randomUUID().slice(0, 8)}.part`;
  if (existsSync(output)) renameSync(output, previous);
  renameSync(unfinished, output);
  rmSync(previous, { recursive: true, force: true });
}
