import type { Stats } from 'node:fs';
import { statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * The file that keeps a path from being a folder: the path itself, or one that it would be in. What cannot be looked at
 * counts as missing, for whoever uses the folder says so better.
 */
export function fileInTheWay(path: string): string | undefined {
  const found = lookAt(path);
  if (found) return found.isDirectory() ? undefined : path;
  const parent = dirname(path);
  return parent === path ? undefined : fileInTheWay(parent);
}

function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
