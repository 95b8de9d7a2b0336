import { closeSync, openSync, readSync } from 'node:fs';

const beginning = 'version https://git-lfs.github.com/spec/';

/** The end of a sentence about a file that a clone without Git LFS has in place of a large one. */
export const isPointer = 'is only a pointer of Git LFS';

/** Whether a text is such a pointer. */
export const isPointerText = (text: string): boolean => text.startsWith(beginning);

/** Whether a file that can be read is such a pointer. */
export function isPointerFile(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(beginning.length);
    return isPointerText(head.toString('utf8', 0, readSync(file, head)));
  } finally {
    closeSync(file);
  }
}
