import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Lets the engines of all spec files share one cache of optimised graphs, so that each graph is optimised once in a
 * run.
 * @param cacheDir the cache of an engine; in a process of the service it is `cache` in the data folder
 * @param graphs the shared cache; by default that of the run
 */
export function shareGraphs(cacheDir: string, graphs = process.env.TEST_GRAPHS_DIR!): void {
  mkdirSync(cacheDir, { recursive: true });
  symlinkSync(graphs, join(cacheDir, 'graphs'));
}
