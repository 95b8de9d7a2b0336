import { existsSync } from 'node:fs';
import { extname, join, parse } from 'node:path';

const longestName = 60;

const formats = new Map<string, 'png' | 'jpeg' | 'webp'>([
  ['.png', 'png'],
  ['.jpg', 'jpeg'],
  ['.jpeg', 'jpeg'],
  ['.webp', 'webp'],
]);

/** The format that a file's name asks for; undefined for one that is not drawn. */
export function formatOf(file: string): 'png' | 'jpeg' | 'webp' | undefined {
  return formats.get(extname(file).toLowerCase());
}

/**
 * A file name that says what the picture shows: `a-red-circle-on-a-blue-background-42.png`. An existing file is never
 * overwritten: `…-42-2.png` follows.
 */
export function pictureFile(
  prompt: string,
  seed: number,
  extension: string,
  exists: (file: string) => boolean = existsSync,
): string {
  const words = prompt
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{Mark}+/gu, '')
    .replace(/[^\p{Letter}\p{Number}]+/gu, '-')
    .slice(0, longestName)
    .replace(/^-+|(?<!-)-+$/g, '');
  return unusedFile(`${words || 'picture'}-${seed}.${extension}`, exists);
}

/** The file itself, or the first numbered variant that does not exist. */
export function unusedFile(file: string, exists: (file: string) => boolean = existsSync): string {
  const { dir, name, ext } = parse(file);
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? file : join(dir, `${name}-${number}${ext}`);
    if (!exists(candidate)) return candidate;
  }
}
